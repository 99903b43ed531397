"""What the scheduler takes every kind of call to cost, on each engine that may run it.

The chip's compiler orders by a table of costs of its own, not by the chip's speed of the moment: the order in
published traces does not depend on the element type, and the Tensor engine counts as warm (fused attention,
fp32 and bf16, agree in every pair of instructions). Ours are the simulator's costs at full rate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.backend.kinds import Kind, Step, Transfer
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import INSTRUCTION_DTYPE, Engine, Memory, empty_table
from neuron_tools.simulator.instruction_costs import instruction_costs

ENGINES = len(Engine)
_COLUMNS = (
    "engine", "opcode", "input_dtype", "output_dtype", "source_memory", "destination_memory", "flags",
    "partitions", "columns", "elements",
)  # fmt: skip


@frozen
class KindCosts:
    """Costs of kinds in picoseconds.

    Attributes:
        interval: (kinds, engines) until the engine takes its next call; -1 where it cannot run it.
        latency: (kinds, engines) until the result is there.
        preferred: (kinds,) engine that takes it where others are as good.
        transfer: (kinds,) time that the DMA engines spend on it; -1 for others.
        loads: (kinds,) whether it brings data on chip.
    """

    interval: Ints
    latency: Ints
    preferred: Ints
    transfer: Ints
    loads: npt.NDArray[np.bool_]


def choices(kind: Kind) -> tuple[Engine, ...]:
    """Engines that may run a kind, preferred first."""
    if not kind.steps:
        return ()
    return kind.engines or (kind.steps[-1].engine,)


def on_engine(kind: Kind, engine: Engine) -> Kind:
    """The kind with its choice made; its steps keep what it was made from."""
    was_open = sum(1 << each for each in kind.engines)
    steps = tuple(replace(step, engine=engine, open_engines=was_open) for step in kind.steps)
    return replace(kind, steps=steps, engines=())


def kind_costs(kinds: list[Kind], core: NeuronCore, trigger: list[Engine]) -> KindCosts:
    """Costs of all kinds.

    Args:
        kinds: What may be called.
        core: On what.
        trigger: Engine that starts each, where it is a DMA.
    """
    count = len(kinds)
    interval, latency = np.full((count, ENGINES), -1, np.int64), np.full((count, ENGINES), -1, np.int64)
    preferred, transfer = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    loads = np.zeros(count, bool)
    for number, kind in enumerate(kinds):
        if kind.transfer is not None:
            engine = trigger[number]
            interval[number, engine] = latency[number, engine] = int(_issue_ns(kind.transfer, core) * 1000)
            transfer[number] = int(_stream_ns(kind.transfer, core) * 1000)
            loads[number] = kind.transfer.destination_memory is not Memory.HBM
            preferred[number] = engine
            continue
        for engine in choices(kind):
            steps = on_engine(kind, engine).steps if kind.engines else kind.steps
            interval[number, engine], latency[number, engine] = _steps_ps(steps, core)
        preferred[number] = choices(kind)[0]
    return KindCosts(interval, latency, preferred, transfer, loads)


def _steps_ps(steps: tuple[Step, ...], core: NeuronCore) -> tuple[int, int]:
    table = empty_table(INSTRUCTION_DTYPE, len(steps))
    for row, step in enumerate(steps):
        for column in _COLUMNS:
            table[column][row] = int(getattr(step, column))
    intervals, latencies = instruction_costs(table, core)
    total = int(intervals.sum())
    return total, total - int(intervals[-1]) + int(latencies[-1])


def _issue_ns(transfer: Transfer, core: NeuronCore) -> float:
    if transfer.descriptors_by == "hardware":
        return core.dma_hardware_issue_ns
    return core.dma_software_issue_ns if transfer.descriptors_by == "software" else core.dma_prebuilt_issue_ns


def _stream_ns(transfer: Transfer, core: NeuronCore) -> float:
    """Time of all DMA engines on a transfer alone."""
    descriptors = max(-(-transfer.bytes // max(transfer.descriptor_bytes, 1)), 1)
    packets = descriptors * max(-(-transfer.descriptor_bytes // core.dma_maximum_packet_bytes), 1)
    busy = transfer.bytes / core.dma_engine_bandwidth * 1e9 + packets * core.dma_packet_overhead_ns
    return busy / min(core.dma_engines, descriptors)
