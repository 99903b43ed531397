"""Costs of single instructions equal the published Trn2 and Trn1 timings."""

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.records.program import INSTRUCTION_DTYPE, DType, Engine, Flag, Memory, Opcode, empty_table
from neuron_tools.simulator.instruction_costs import instruction_costs, is_estimate

# Trn2: github.com trainium-kernel-fusion, profiling/artifacts (8 traces); medians at full rate, nanoseconds.
# Trn1: figures of the NKI performance guide, aws-neuron-sdk@v2.26.1.
# (target, engine, opcode, dtype, source, flags, columns, elements, interval, latency); None = not published
PUBLISHED = [
    ("trn2", "TENSOR", "MATMUL", "BF16", "SBUF", 0, 128, 128, 55, 217),
    ("trn2", "TENSOR", "MATMUL", "BF16", "SBUF", 0, 128, 512, 215, 377),
    ("trn2", "TENSOR", "MATMUL", "F32", "SBUF", Flag.FP32_HALF, 128, 128, 109, 274),
    ("trn2", "TENSOR", "MATMUL", "F32", "SBUF", Flag.FP32_HALF, 128, 512, 428, 591),
    ("trn2", "TENSOR", "TRANSPOSE", "F32", "SBUF", 0, 128, 128, 108, 272),
    ("trn2", "TENSOR", "LDWEIGHTS", "BF16", "SBUF", 0, 128, 0, None, 97),
    ("trn2", "TENSOR", "LDWEIGHTS", "F32", "SBUF", Flag.FP32_HALF, 128, 0, None, 191),
    ("trn2", "TENSOR", "LDWEIGHTS", "F32", "SBUF", Flag.TRANSPOSE, 128, 0, None, 140),
    ("trn2", "SCALAR", "ACTIVATE", "F32", "PSUM", 0, 0, 512, 570, 685),
    ("trn2", "SCALAR", "ACTIVATE", "F32", "SBUF", 0, 0, 512, 612, 707),
    ("trn2", "SCALAR", "TENSOR_COPY", "F32", "PSUM", 0, 0, 512, None, 585),
    ("trn2", "SCALAR", "TENSOR_COPY", "F32", "PSUM", 0, 0, 128, None, 265),
    ("trn2", "SCALAR", "ACT_TABLE_LOAD", "NONE", "NONE", 0, 0, 0, None, 1283),
    ("trn2", "VECTOR", "TENSOR_REDUCE", "F32", "SBUF", 0, 0, 512, 592, 685),
    ("trn2", "VECTOR", "TENSOR_REDUCE", "F32", "PSUM", 0, 0, 512, None, 679),
    ("trn2", "VECTOR", "TENSOR_REDUCE", "F32", "SBUF", 0, 0, 16, None, 169),
    ("trn2", "VECTOR", "TENSOR_REDUCE", "F32", "SBUF", 0, 0, 8, 67, 156),
    ("trn2", "VECTOR", "TENSOR_REDUCE", "F32", "SBUF", 0, 0, 4, None, 157),
    ("trn2", "VECTOR", "TENSOR_SCALAR", "F32", "SBUF", 0, 0, 512, 395, 481),
    ("trn2", "VECTOR", "TENSOR_SCALAR", "F32", "PSUM", 0, 0, 128, None, 349),
    ("trn2", "VECTOR", "TENSOR_COPY", "F32", "PSUM", 0, 0, 512, 596, 690),
    ("trn2", "VECTOR", "TENSOR_COPY", "F32", "PSUM", 0, 0, 128, None, 290),
    ("trn2", "VECTOR", "RECIPROCAL", "F32", "SBUF", 0, 0, 8, None, 202),
    ("trn2", "VECTOR", "RECIPROCAL", "F32", "SBUF", 0, 0, 4, None, 173),
    ("trn2", "TENSOR", "EVENT_SEMAPHORE", "NONE", "NONE", 0, 0, 0, None, 52),
    ("trn2", "VECTOR", "EVENT_SEMAPHORE", "NONE", "NONE", 0, 0, 0, None, 23),
    ("trn1", "TENSOR", "MATMUL", "BF16", "SBUF", 0, 1, 128, None, 188),
    ("trn1", "TENSOR", "MATMUL", "BF16", "SBUF", 0, 96, 128, None, 219),
    ("trn1", "TENSOR", "LDWEIGHTS", "BF16", "SBUF", 0, 1, 0, None, 67),
    ("trn1", "SCALAR", "ACTIVATE", "F32", "PSUM", 0, 0, 1, None, 159),
    ("trn1", "SCALAR", "ACT_TABLE_LOAD", "NONE", "NONE", 0, 0, 0, None, 368),
    ("trn1", "VECTOR", "TENSOR_TENSOR", "F32", "SBUF", 0, 0, 8192, None, 14968),
]


def instruction(
    engine, opcode, dtype="F32", source="SBUF", flags=0, columns=0, elements=0, destination="SBUF"
):
    table = empty_table(INSTRUCTION_DTYPE, 1)
    table["engine"], table["opcode"] = Engine[engine], Opcode[opcode]
    table["input_dtype"] = table["output_dtype"] = DType[dtype]
    table["source_memory"], table["destination_memory"] = Memory[source], Memory[destination]
    table["flags"], table["partitions"], table["columns"], table["elements"] = flags, 128, columns, elements
    return table


def cost_ns(target, *arguments, **keywords):
    interval, latency = instruction_costs(instruction(*arguments, **keywords), hardware.get(target))
    return interval[0] / 1000, latency[0] / 1000


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: "-".join(str(item) for item in row[:8]))
def test_cost_is_within_5_percent_of_the_published_timing(row):
    target, *description, interval_ns, latency_ns = row
    interval, latency = cost_ns(target, *description)
    assert latency == pytest.approx(latency_ns, rel=0.05)
    if interval_ns is not None:
        assert interval == pytest.approx(interval_ns, rel=0.05)


@pytest.mark.parametrize(("target", "slower"), [("trn1", 1.0), ("trn2", 2.4 / 1.4)])
def test_an_fp32_product_of_one_row_takes_four_cycles_of_the_published_clock(target, slower):
    table = np.concatenate(
        [instruction("TENSOR", "MATMUL", flags=Flag.FP32_HALF, columns=128, elements=512) for _ in range(2)]
    )
    table["partitions"] = 1, 128
    (row, full), _ = instruction_costs(table, hardware.get(target))
    assert row / full == pytest.approx(slower, rel=0.01)


def test_fp32_matmul_takes_four_passes_and_its_half_two():
    whole, _ = cost_ns("trn2", "TENSOR", "MATMUL", "F32", columns=128, elements=512)
    half, _ = cost_ns("trn2", "TENSOR", "MATMUL", "F32", flags=Flag.FP32_HALF, columns=128, elements=512)
    bf16, _ = cost_ns("trn2", "TENSOR", "MATMUL", "BF16", columns=128, elements=512)
    assert whole == pytest.approx(4 * bf16, rel=0.01)
    assert half == pytest.approx(2 * bf16, rel=0.01)


def test_fp8_matmul_is_twice_as_fast_on_v3_but_not_on_v2():
    for target, ratio in (("trn1", 1), ("trn2", 2)):
        bf16, _ = cost_ns(target, "TENSOR", "MATMUL", "BF16", columns=128, elements=512)
        fp8, _ = cost_ns(target, "TENSOR", "MATMUL", "FP8", columns=128, elements=512)
        assert bf16 / fp8 == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize(
    ("target", "opcode", "dtype", "source", "flags", "elements_per_cycle"),
    [
        ("trn1", "TENSOR_COPY", "BF16", "SBUF", 0, 1),
        ("trn2", "TENSOR_COPY", "BF16", "SBUF", 0, 4),
        ("trn2", "TENSOR_COPY", "BF16", "SBUF", Flag.STRIDED, 2),
        ("trn2", "TENSOR_COPY", "BF16", "PSUM", 0, 2),
        ("trn2", "TENSOR_COPY", "F32", "SBUF", 0, 2),
        ("trn2", "TENSOR_COPY", "F32", "PSUM", 0, 1),
        ("trn1", "TENSOR_TENSOR", "F32", "SBUF", 0, 0.5),
        ("trn1", "TENSOR_TENSOR", "BF16", "SBUF", 0, 1),
        ("trn1", "TENSOR_TENSOR", "F32", "SBUF", Flag.SECOND_OPERAND_PSUM, 1),
        ("trn2", "TENSOR_TENSOR", "BF16", "SBUF", 0, 2),
        ("trn1", "TENSOR_REDUCE", "BF16", "SBUF", 0, 2),
        ("trn1", "MEMSET", "BF16", "SBUF", 0, 2),
    ],
)
def test_vector_performance_modes_stream_as_documented(
    target, opcode, dtype, source, flags, elements_per_cycle
):
    clock = hardware.get(target).vector_clock_ghz
    few, _ = cost_ns(target, "VECTOR", opcode, dtype, source, flags, elements=1000)
    many, _ = cost_ns(target, "VECTOR", opcode, dtype, source, flags, elements=9000)
    assert 8000 / ((many - few) * clock) == pytest.approx(elements_per_cycle, rel=0.01)


def test_an_accumulated_reduction_costs_64_cycles_more():
    plain, _ = cost_ns("trn2", "SCALAR", "ACTIVATE", elements=512)
    reducing, _ = cost_ns("trn2", "SCALAR", "ACTIVATE", elements=512, flags=Flag.REDUCES)
    assert reducing - plain == pytest.approx(64 / 1.2, abs=0.01)


@pytest.mark.parametrize("target", hardware.targets())
def test_every_opcode_has_a_cost_on_every_engine(target):
    table = np.concatenate(
        [instruction(engine.name, opcode.name, elements=64) for engine in Engine for opcode in Opcode]
    )
    interval, latency = instruction_costs(table, hardware.get(target))
    assert np.all(interval > 0)
    assert np.all(latency > 0)


def test_costs_grow_with_elements():
    for engine, opcode in (("VECTOR", "TENSOR_TENSOR"), ("SCALAR", "ACTIVATE"), ("GPSIMD", "IOTA")):
        costs = [cost_ns("trn2", engine, opcode, elements=n) for n in (1, 64, 512, 4096)]
        assert costs == sorted(costs)


def test_what_rests_on_estimates_is_marked():
    measured = instruction("VECTOR", "TENSOR_REDUCE", elements=512)
    guessed = instruction("GPSIMD", "CUSTOM_OP", elements=512)
    assert not is_estimate(measured, hardware.get("trn2"))[0]
    assert is_estimate(guessed, hardware.get("trn2"))[0]
    assert is_estimate(measured, hardware.get("trn3"))[0]
