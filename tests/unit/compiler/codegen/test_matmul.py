"""Blocks of products: how often operands are read, in stretches of what length, and how long that takes."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.frontends.torch_eager import lower_operation
from neuron_tools.records.program import Engine, Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.frontends.signatures import describe_call

CORE = hardware.get("trn1")
DRAWN_BY_A_CORE = 272e9
"""What a core draws: 16 DMA engines of 17 GB/s (aws-neuron-sdk, nki-dma-bandwidth-guide.rst)."""


def gradient_of_weight(tokens, outputs, inputs, dtype):
    gradient, data = (torch.empty(tokens, size, dtype=dtype, device="meta") for size in (outputs, inputs))
    target = torch.ops.aten.mm.default
    module = lower_operation(target.name(), describe_call(target, (gradient.T, data), {}))
    return compile_module(module, CORE)


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
    multiplied = rows[rows["opcode"] == Opcode.MATMUL].astype(rows.dtype)
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


def test_the_tensor_engine_alone_makes_them():
    rows = gradient_of_weight(2048, 768, 768, torch.bfloat16).instructions
    assert not (rows["opcode"] == Opcode.TRANSPOSE).any()
    assert (rows["engine"] == Engine.TENSOR).any()
