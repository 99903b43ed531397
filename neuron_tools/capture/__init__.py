"""Captures: record what processes run on the simulated device, and assemble it into one profile.

`session` and what it installs run inside the captured processes and write a log; `assembler` reads the
logs, usually from the `neuron-profile capture` command, and writes the profile.
"""
