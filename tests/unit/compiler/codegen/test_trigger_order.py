"""Transfers that wait for little are triggered before those that wait for more."""

from __future__ import annotations

from neuron_tools.compiler.codegen.trigger_order import trigger_when_ready
from neuron_tools.records.program import Engine, Memory, Opcode, Program, QueueKind
from neuron_tools.simulator.builder import ProgramBuilder


def _program(*, own_ring: bool) -> Program:
    """A result is stored and loaded again; a weight is loaded behind that."""
    build = ProgramBuilder("order")
    load = build.queue("load", Engine.SYNC, QueueKind.INPUT)
    ahead = build.queue("ahead", Engine.SYNC, QueueKind.INPUT) if own_ring else load
    made = build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=64)
    move = {"bytes": 4096, "descriptor_bytes": 512, "partitions": 8}
    into = {"source_memory": Memory.HBM, "destination_memory": Memory.SBUF}
    build.dma(load, after=[made], **into, **move)  # type: ignore[arg-type]
    build.dma(ahead, **into, **move)  # type: ignore[arg-type]
    trigger_when_ready(build)
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
    assert [int(program.instructions["dma"][row]) for row in waiting] == [0]
