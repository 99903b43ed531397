"""JAX: every jitted computation becomes a module for the compiler, XLA's CPU back end computes the values.

jit call -> interception (what ran, on which devices) -> lowering (StableHLO with locations, partitioned
for one device) -> compiler -> simulator
"""
