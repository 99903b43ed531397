"""Blocks of products: how often operands are read, in stretches of what length, and how long that takes."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.records.program import Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

CORE = hardware.get("trn1")


def gradient_of_weight(tokens, outputs, inputs, dtype, core=CORE):
    gradient, data = (torch.empty(tokens, size, dtype=dtype, device="meta") for size in (outputs, inputs))
    return compile_module(lowered(torch.ops.aten.mm.default, gradient.T, data), core)


def loaded(program):
    return program.dmas[program.dmas["source_memory"] == Memory.HBM]


SIZES = [
    (4096, 768, 3072),
    (4096, 3072, 768),
    (4096, 768, 768),
    (2048, 768, 768),
    (2048, 3072, 768),
    (1000, 300, 700),
    (128, 128, 128),
    (50176, 64, 256),
]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("sizes", SIZES)
def test_products_of_all_sizes_are_made_whole(sizes, dtype):
    program = gradient_of_weight(*sizes, dtype)
    tokens, outputs, inputs = sizes
    rows = program.instructions
    multiplied = rows[rows["opcode"] == Opcode.MATMUL]
    work = multiplied["partitions"].astype(int) * multiplied["columns"] * multiplied["elements"]
    assert work.sum() == tokens * outputs * inputs
    stored = program.dmas[program.dmas["destination_memory"] == Memory.HBM]["bytes"].sum()
    assert stored == outputs * inputs * dtype.itemsize
    assert tile_races(program) == 0
    assert not program.warnings


@pytest.mark.parametrize("sizes", SIZES[:5])
def test_gradients_of_weights_take_little_longer_than_the_tensor_engine_or_their_bytes(sizes):
    program = gradient_of_weight(*sizes, torch.bfloat16)
    tokens, outputs, inputs = sizes
    flops, moved = 2 * tokens * outputs * inputs, 2 * (tokens * (outputs + inputs) + outputs * inputs)
    bound_s = max(flops / CORE.peak_tensor_flops, moved / DRAWN_BY_A_CORE)
    assert simulate(program, CORE).duration_ps * 1e-12 <= 2.4 * bound_s


def test_operands_are_read_in_stretches_of_a_kilobyte_at_least():
    moved = loaded(gradient_of_weight(4096, 768, 3072, torch.bfloat16))
    assert (moved["descriptor_bytes"] >= 1024).all()
    assert moved["bytes"].sum() <= 2 * 4096 * (768 + 3072) * 2


def test_operands_whose_contraction_lies_on_partitions_are_not_turned():
    program = gradient_of_weight(2048, 768, 768, torch.bfloat16)
    assert not (program.instructions["opcode"] == Opcode.TRANSPOSE).any()
    assert not program.dmas["transpose"].any()


def linear(rows, inputs, outputs, dtype=torch.float32):
    data, weight = (torch.empty(size, inputs, dtype=dtype, device="meta") for size in (rows, outputs))
    return compile_module(lowered(torch.ops.aten.mm.default, data, weight.T), CORE)


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"), [(64, 200_704, 10), (32, 25_088, 512), (4096, 768, 768)]
)
def test_what_meets_one_block_of_the_other_side_never_goes_back_to_memory_to_be_turned(rows, inputs, outputs):
    program = linear(rows, inputs, outputs)
    moved = loaded(program)["bytes"].sum()
    assert moved <= 1.1 * 4 * inputs * (rows + outputs)
    stored = program.dmas[program.dmas["destination_memory"] == Memory.HBM]["bytes"].sum()
    assert stored == 4 * rows * outputs
    assert tile_races(program) == 0


@pytest.mark.parametrize(("dtype", "times"), [(torch.float32, 3), (torch.bfloat16, 1.5)])
def test_a_long_contraction_of_few_rows_takes_little_longer_than_its_bytes(dtype, times):
    duration_s = simulate(linear(64, 200_704, 10, dtype), CORE).duration_ps * 1e-12
    assert duration_s <= times * dtype.itemsize * 200_704 * (64 + 10) / DRAWN_BY_A_CORE


def test_where_products_take_longest_operands_are_read_seldom():
    """The Tensor engine is busy all the time either way: more loads gain nothing."""
    program = gradient_of_weight(2048, 2048, 2048, torch.float32, hardware.get("trn2"))
    once = 2 * 2048 * 2048 * torch.float32.itemsize
    assert loaded(program)["bytes"].sum() <= 3 * once


def test_a_last_tile_of_few_columns_counts_as_what_it_is_where_blocks_are_chosen():
    program = gradient_of_weight(4096, 768, 768, torch.float32)
    assert loaded(program)["bytes"].sum() <= 1.5 * 2 * 4096 * 768 * torch.float32.itemsize
