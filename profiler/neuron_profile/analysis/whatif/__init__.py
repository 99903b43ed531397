"""What-if runs: the stored programs simulated again with a cause removed, and the time that follows.

change (what is different) -> variant of each program -> simulation -> durations of the executions
-> replay of host and device -> the time the whole program would take
"""
