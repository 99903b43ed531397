"""What one execution of a compiled computation adds to a core's counters: worked out once."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.device.driver.nodes import ENGINES
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Engine, Program, TensorKind
from neuron_tools.records.simulation import Simulation
from neuron_tools.simulator.counters import dma_counters, product_flops
from neuron_tools.simulator.throughput import union

COUNTERS = ("flop_count", "throttled_ns", "hbm_read_bytes", "hbm_write_bytes", "dma_bytes", *ENGINES)
"""Columns of `ExecutableUsage.counters`; an engine's name stands for its busy time in ns."""


@frozen
class ExecutableUsage:
    """A compiled computation as the driver's counters see it.

    Attributes:
        counters: (physical cores, len(COUNTERS)) int64, of one execution.
        constant_bytes: Device memory of its constants.
        scratchpad_bytes: Device memory of what it keeps outside the chip while it runs.
    """

    name: str
    duration_ns: int
    counters: Ints
    constant_bytes: int
    scratchpad_bytes: int


def executable_usage(
    name: str, duration_ns: int, program: Program, simulation: Simulation
) -> ExecutableUsage:
    """The usage of a simulated Program; times are rounded as the profile's are, so that both agree."""
    parts = zip(program.of_cores, simulation.of_cores)
    return ExecutableUsage(
        name=name,
        duration_ns=duration_ns,
        counters=np.array([_counters(part, times) for part, times in parts], np.int64),
        constant_bytes=_tensor_bytes(program, TensorKind.CONSTANT),
        scratchpad_bytes=_tensor_bytes(program, TensorKind.INTERMEDIATE),
    )


def _counters(program: Program, simulation: Simulation) -> list[int]:
    """What one execution adds on one physical core."""
    moved = dma_counters(program)
    flops = int(product_flops(program)[0].sum())
    busy = [_busy(program, simulation, engine) for engine in ENGINES]
    busy_ns = [int((end - start).sum()) for start, end in busy]
    traffic = [moved.hbm_read_bytes.sum(), moved.hbm_write_bytes.sum(), program.dmas["bytes"].sum()]
    return [flops, _throttled_ns(*busy[ENGINES.index("tensor")], simulation), *traffic, *busy_ns]


def _busy(program: Program, simulation: Simulation, engine: str) -> tuple[Ints, Ints]:
    """When at least one of the engine's instructions ran, ns: disjoint, ascending."""
    rows = program.instructions["engine"] == Engine[engine.upper()]
    return union(simulation.start_ps[rows] // 1000, simulation.end_ps[rows] // 1000)


def _throttled_ns(start: Ints, end: Ints, simulation: Simulation) -> int:
    """Time in which the Tensor engine, which is busy from `start` to `end`, works at less than its full rate.

    A core at rest has half of the rate: where the engine does nothing, nothing is slowed down by that.
    """
    if not len(start):
        return 0
    limits = simulation.throttle[simulation.throttle["k"] < simulation.throttle["n"]]
    edges_ns = np.stack([start, end], axis=1).ravel()
    busy_ns = np.repeat(np.cumsum(end - start), 2)
    busy_ns[::2] -= end - start
    until, since = (
        np.interp(edge // 1000, edges_ns, busy_ns)
        for edge in (limits["start_ps"] + limits["duration_ps"], limits["start_ps"])
    )
    return int((until - since).sum())


def _tensor_bytes(program: Program, kind: TensorKind) -> int:
    return sum(tensor.byte_count for tensor in program.tensors if tensor.kind == kind)
