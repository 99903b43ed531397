"""Waits for memory to be free go, waits for values stay."""

from __future__ import annotations

import numpy as np

from neuron_profile.analysis.whatif.own_buffers import recorded_edges, with_own_buffers
from neuron_tools import hardware
from neuron_tools.records.program import DType, Engine, Memory, Opcode, QueueKind
from neuron_tools.simulator import ProgramBuilder, simulate
from tests.unit.neuron_profile.small_capture import loads, program

CORE = hardware.get("trn2")


def tiles_of_loop(shared: bool):
    """Load, square, store of 12 tiles: in one buffer, or each in its own."""
    builder = ProgramBuilder("loop")
    load = builder.queue("in", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    store = builder.queue("out", Engine.GPSIMD, QueueKind.HARDWARE_DYNAMIC)
    stored: list[int] = []
    for number in range(12):
        tile = builder.tile(Memory.SBUF, 0 if shared else 4096 * number, 4096)
        sides = {"bytes": 4096 * 128, "descriptor_bytes": 4096, "partitions": 128, "tile": tile}
        loaded = builder.dma(
            load, source_memory=Memory.HBM, destination_memory=Memory.SBUF, after=stored, **sides
        )
        done = builder.instruction(
            Engine.SCALAR, Opcode.ACTIVATE, partitions=128, elements=1024, input_dtype=DType.F32,
            output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.SBUF, source=tile,
            destination=tile, after=[loaded],
        )  # fmt: skip
        token = builder.dma(
            store, source_memory=Memory.SBUF, destination_memory=Memory.HBM, after=[done], **sides
        )
        stored = [token] if shared else []
    return builder.finish()


def duration(each):
    return simulate(each, CORE).duration_ps


def test_a_shared_buffer_becomes_as_fast_as_one_for_each_tile():
    shared, own = tiles_of_loop(True), tiles_of_loop(False)
    assert duration(shared) > 1.5 * duration(own)
    assert duration(with_own_buffers(shared)) == duration(own)


def test_values_are_still_waited_for():
    own = tiles_of_loop(False)
    assert with_own_buffers(own) is own
    changed = with_own_buffers(tiles_of_loop(True))
    times = simulate(changed, CORE)
    work = np.flatnonzero(changed.instructions["opcode"] == int(Opcode.ACTIVATE))
    loaded = np.flatnonzero(changed.dmas["destination_memory"] == int(Memory.SBUF))
    stored = np.flatnonzero(changed.dmas["source_memory"] == int(Memory.SBUF))
    assert (times.start_ps[work] >= times.dma_end_ps[loaded]).all()
    assert (times.dma_start_ps[stored] >= times.end_ps[work]).all()


def test_a_tensor_that_was_stored_is_loaded_after_it():
    builder = ProgramBuilder("through HBM")
    queue = builder.queue("in", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
    out = builder.queue("out", Engine.GPSIMD, QueueKind.HARDWARE_DYNAMIC)
    tile = builder.tile(Memory.SBUF, 0, 4096)
    sides = {"bytes": 4096 * 128, "descriptor_bytes": 4096, "partitions": 128, "tile": tile, "tensor": 0}
    stored = builder.dma(out, source_memory=Memory.SBUF, destination_memory=Memory.HBM, **sides)
    builder.dma(queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, after=[stored], **sides)
    whole = builder.finish()
    assert with_own_buffers(whole) is whole


def test_rows_without_tiles_keep_their_order():
    unnamed = program([("load", 6)], loads(8, 4096))
    assert with_own_buffers(unnamed) is unnamed


def test_edges_are_those_that_were_built():
    rows, producers = recorded_edges(tiles_of_loop(True))
    count = 36
    assert (rows[:4].tolist(), producers[:4].tolist()) == ([1, 2, 3, 4], [count, 1, count + 1, count + 2])
