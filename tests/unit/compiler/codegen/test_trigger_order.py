"""Transfers that wait for little are triggered before those that wait for more."""

from __future__ import annotations

import numpy as np

from neuron_tools import hardware
from neuron_tools.compiler.codegen.trigger_order import _latest_ns, trigger_when_ready
from neuron_tools.records.program import Engine, Memory, Opcode, Program, QueueKind
from neuron_tools.simulator.builder import ProgramBuilder

CORE = hardware.get("trn2")
LOAD = {
    "source_memory": Memory.HBM,
    "destination_memory": Memory.SBUF,
    "descriptor_bytes": 512,
    "partitions": 8,
}


def _program(*, own_ring: bool) -> Program:
    """A result is stored and loaded again; a weight is loaded behind that."""
    build = ProgramBuilder("order")
    load = build.queue("load", Engine.SYNC, QueueKind.INPUT)
    ahead = build.queue("ahead", Engine.SYNC, QueueKind.INPUT) if own_ring else load
    made = build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=64)
    again = build.dma(load, after=[made], bytes=4096, **LOAD)  # type: ignore[arg-type]
    weight = build.dma(ahead, bytes=4096, **LOAD)  # type: ignore[arg-type]
    build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=64, after=[again, weight])
    trigger_when_ready(build, CORE)
    return build.finish()


def _triggered(program: Program) -> list[int]:
    return [dma for dma in program.instructions["dma"].tolist() if dma >= 0]


def test_a_load_that_waits_for_nothing_overtakes_one_that_waits_for_a_result() -> None:
    assert _triggered(_program(own_ring=True)) == [1, 0]


def test_the_transfers_of_a_ring_keep_their_order() -> None:
    assert _triggered(_program(own_ring=False)) == [0, 1]


def test_what_waits_still_waits() -> None:
    program = _program(own_ring=True)
    waiting = [row for row in range(len(program.instructions)) if program.instructions["wait_count"][row]]
    assert [int(program.instructions["dma"][row]) for row in waiting] == [0, -1]


def test_what_is_needed_much_later_is_not_loaded_yet() -> None:
    build = ProgramBuilder("order")
    rings = [build.queue(name, Engine.SYNC, QueueKind.INPUT) for name in ("late", "soon")]
    for _ in range(400):  # of 4 us each
        made = build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=4096)
    soon = build.dma(rings[1], after=[made], bytes=4096, **LOAD)  # type: ignore[arg-type]
    build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=64, after=[soon])
    for _ in range(400):
        build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=4096)
    late = build.dma(rings[0], bytes=4096, **LOAD)  # type: ignore[arg-type]
    build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=64, after=[late])
    trigger_when_ready(build, CORE)
    instructions = build.finish().instructions
    first, last = np.flatnonzero(instructions["dma"] >= 0)
    assert (instructions["dma"][first], instructions["dma"][last]) == (0, 1)
    assert 700 < last < 800


def test_transfers_begin_in_time_for_all_to_be_there() -> None:
    latest = _latest_ns(np.array([100.0, 40.0, np.inf, 95.0]), np.array([10.0, 20.0, 5.0, 30.0]))
    assert latest.tolist() == [90.0, 20.0, np.inf, 60.0]
