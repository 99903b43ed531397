"""Counters, occupancy and throughput of small Programs whose answers are known."""

import numpy as np
import pytest
from hypothesis import given, settings

from neuron_tools import hardware
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, Purpose
from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.counters import dma_counters, instruction_counters
from neuron_tools.simulator.occupancy import psum_occupancy, sbuf_occupancy, tile_lifetimes
from neuron_tools.simulator.simulation import simulate
from neuron_tools.simulator.throughput import pending, throughput, union

from .programs import programs

CORE = hardware.get("trn2")
relaxed = settings(max_examples=20, deadline=None)


def single(engine, opcode, **columns):
    build = ProgramBuilder("one")
    tile = columns.pop("tile", None)
    if tile:
        columns["destination"] = build.tile(*tile)
    build.instruction(engine, opcode, **columns)
    return instruction_counters(build.finish(), CORE)


def test_a_matmul_counts_two_flops_per_multiply_accumulate():
    counters = single(
        Engine.TENSOR, Opcode.MATMUL, partitions=64, columns=32, elements=512, input_dtype=DType.BF16,
        output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.PSUM,
    )  # fmt: skip
    assert counters.raw_flops[0] == counters.adjusted_flops[0] == 2 * 64 * 32 * 512
    assert counters.sbuf_read_bytes[0] == 64 * 512 * 2
    assert counters.psum_write_bytes[0] == 32 * 512 * 4
    assert counters.tensor_elements[0] == 64 * 512
    assert counters.flops_transpose[0] == 0


@pytest.mark.parametrize(
    ("dtype", "flags", "raw", "adjusted"),
    [
        (DType.F32, Flag.NONE, 1, 4),
        (DType.F32, Flag.FP32_HALF, 0.5, 2),
        (DType.FP8, Flag.NONE, 1, 0.5),
        (DType.F32, Flag.TRANSPOSE, 1, 2),
    ],
)
def test_adjusted_flops_are_those_of_bf16_in_the_same_time(dtype, flags, raw, adjusted):
    counters = single(
        Engine.TENSOR,
        Opcode.MATMUL,
        partitions=128,
        columns=128,
        elements=512,
        input_dtype=dtype,
        flags=flags,
    )
    flops = 2 * 128 * 128 * 512
    assert counters.raw_flops[0] == raw * flops
    assert counters.adjusted_flops[0] == adjusted * flops
    assert counters.flops_transpose[0] == (flops if flags == Flag.TRANSPOSE else 0)


def test_two_inputs_are_read_from_where_they_are():
    shape = {"partitions": 128, "elements": 100, "input_dtype": DType.F32, "output_dtype": DType.BF16}
    places = {"source_memory": Memory.SBUF, "destination_memory": Memory.SBUF}
    both = single(Engine.VECTOR, Opcode.TENSOR_TENSOR, **shape, **places)
    assert both.sbuf_read_bytes[0] == 2 * 128 * 100 * 4
    assert both.sbuf_write_bytes[0] == 128 * 100 * 2
    split = single(Engine.VECTOR, Opcode.TENSOR_TENSOR, **shape, **places, flags=Flag.SECOND_OPERAND_PSUM)
    assert split.sbuf_read_bytes[0] == split.psum_read_bytes[0] == 128 * 100 * 4
    assert split.psum_read_sbuf_write_bytes[0] == 128 * 100 * 2


def test_a_reduction_writes_no_more_than_its_tile_holds():
    counters = single(
        Engine.VECTOR, Opcode.TENSOR_REDUCE, partitions=128, elements=512, input_dtype=DType.F32,
        output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.SBUF,
        tile=(Memory.SBUF, 0, 4),
    )  # fmt: skip
    assert counters.sbuf_read_bytes[0] == 128 * 512 * 4
    assert counters.sbuf_write_bytes[0] == 128 * 4


def test_memset_reads_nothing():
    counters = single(
        Engine.VECTOR, Opcode.MEMSET, partitions=128, elements=8, input_dtype=DType.F32,
        output_dtype=DType.F32, source_memory=Memory.SBUF, destination_memory=Memory.SBUF,
    )  # fmt: skip
    assert counters.sbuf_read_bytes[0] == 0
    assert counters.sbuf_write_bytes[0] == 128 * 8 * 4


def test_dma_bytes_are_counted_by_memory_and_purpose_and_on_the_trigger():
    build = ProgramBuilder("dmas")
    queue = build.queue("qSyncIo0", Engine.SYNC)
    for purpose in Purpose:
        build.dma(
            queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=1000 + purpose,
            descriptor_bytes=500, purpose=purpose,
        )  # fmt: skip
    program = build.finish()
    dmas, rows = dma_counters(program), instruction_counters(program, CORE)
    assert dmas.hbm_read_bytes.tolist() == [1000, 1001, 1002, 1003, 1004, 1005]
    assert dmas.sbuf_write_bytes.sum() == dmas.hbm_read_bytes.sum()
    assert dmas.input_queue_bytes.tolist() == [1000, 0, 0, 0, 0, 0]
    assert dmas.weight_queue_bytes.sum() == 1001
    assert dmas.output_queue_bytes.sum() == 1002
    assert dmas.spill_save_bytes.sum() == 1004
    assert dmas.spill_reload_bytes.sum() == 1005
    assert np.array_equal(rows.hbm_read_bytes, dmas.hbm_read_bytes)


def test_host_transfers_move_no_hbm_bytes():
    build = ProgramBuilder("host")
    build.dma(
        build.queue("q", Engine.SYNC), source_memory=Memory.HOST, destination_memory=Memory.HBM, bytes=64,
        descriptor_bytes=64,
    )  # fmt: skip
    assert dma_counters(build.finish()).hbm_write_bytes.tolist() == [0]


def test_occupancy_follows_the_life_of_tiles():
    build = ProgramBuilder("tiles")
    low = build.tile(Memory.SBUF, 0, 22937, start_partition=0, partitions=32)
    bank = build.tile(Memory.PSUM, 2048, 4096)
    build.instruction(Engine.VECTOR, Opcode.MEMSET, partitions=32, elements=512, destination=low)
    build.instruction(Engine.VECTOR, Opcode.TENSOR_COPY, elements=512, source=low, destination=bank)
    program = build.finish()
    result = simulate(program, CORE)
    sbuf, psum = sbuf_occupancy(program, result, CORE), psum_occupancy(program, result, CORE)
    begin, end = tile_lifetimes(program, result)
    assert sbuf.time_ps.tolist() == [begin[low], end[low]]
    assert sbuf.used[0] == pytest.approx([0.1, 0, 0, 0], abs=1e-4)
    assert not sbuf.used[-1].any()
    assert psum.used[0].tolist() == [0, 1, 1, 0, 0, 0, 0, 0]


@given(program=programs())
@relaxed
def test_occupancy_and_pending_stay_in_bounds_and_end_at_nothing(program):
    result = simulate(program, CORE)
    sbuf = sbuf_occupancy(program, result, CORE)
    assert np.all((sbuf.used >= 0) & (sbuf.used <= 1))
    assert np.all(np.diff(sbuf.time_ps) > 0)
    assert not len(sbuf.used) or not sbuf.used[-1].any()
    _, count = pending(result.dma_trigger_ps, result.dma_end_ps)
    assert np.all(count >= 0)
    assert not len(count) or count[-1] == 0


@given(program=programs())
@relaxed
def test_throughput_windows_add_up_to_all_bytes(program):
    result = simulate(program, CORE)
    samples = throughput(result.dma_start_ps, result.dma_end_ps, program.dmas["bytes"], 1_000_000)
    total = program.dmas["bytes"].sum()
    assert (samples.bytes_per_second * 1e-6).sum() == pytest.approx(total)
    assert np.all(np.diff(samples.total_bytes) >= 0)
    assert not len(samples.total_bytes) or samples.total_bytes[-1] == total


def test_union_joins_overlapping_and_touching_intervals():
    start, end = union(np.array([5, 0, 2, 9, 20]), np.array([7, 3, 5, 9, 30]))
    assert start.tolist() == [0, 20]
    assert end.tolist() == [7, 30]
