"""Exchanging two dimensions of short rows moves long stretches, whichever side has the shorter rows."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.records.program import Memory
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, opcodes, tensor

EFFICIENT_BYTES = 512
BOUND_RATIO = 1.5


def _exchanged(shape: tuple[int, ...], permutation: tuple[int, ...], dtype: str):
    source, result = tensor(shape, dtype), tensor([shape[axis] for axis in permutation], dtype)
    line = f"%r = stablehlo.transpose %a, dims = {list(permutation)} : ({source}) -> {result}"
    return compiled(function(f"%a: {source}", result, line))


@pytest.mark.parametrize(("dtype", "size"), [("bf16", 2), ("f32", 4)])
@pytest.mark.parametrize("shape", [(16, 128, 12, 64), (16, 12, 128, 64)])
def test_heads_are_exchanged_with_positions_near_the_hbm_bound(shape, dtype, size):
    program = _exchanged(shape, (0, 2, 1, 3), dtype)
    bound_us = 2 * int(np.prod(shape)) * size / 272e3
    assert simulate(program, CORE).duration_ps * 1e-6 < BOUND_RATIO * bound_us
    assert program.dmas["descriptor_bytes"].min() >= EFFICIENT_BYTES


def test_every_byte_is_moved_once_each_way():
    program = _exchanged((16, 128, 12, 64), (0, 2, 1, 3), "bf16")
    moved = program.dmas["bytes"][program.dmas["source_memory"] == Memory.HBM]
    assert moved.sum() * 2 == program.dmas["bytes"].sum() == 2 * 16 * 128 * 12 * 64 * 2


def test_rows_that_are_long_already_stay_whole():
    program = _exchanged((4, 128, 12, 512), (0, 2, 1, 3), "bf16")
    assert program.dmas["descriptor_bytes"].min() == 512 * 2


def test_a_prime_number_of_rows_is_still_exchanged():
    program = _exchanged((7, 131, 3, 16), (0, 2, 1, 3), "f32")
    moved = program.dmas["bytes"][program.dmas["destination_memory"] == Memory.HBM]
    assert moved.sum() == 7 * 131 * 3 * 16 * 4


@pytest.mark.parametrize(("dtype", "size"), [("bf16", 2), ("f32", 4)])
@pytest.mark.parametrize(
    ("shape", "permutation"),
    [
        ((256, 256, 8), (2, 0, 1)),
        ((8, 256, 256), (1, 2, 0)),
        ((64, 4096, 3), (0, 2, 1)),
        ((16, 4096, 24), (0, 2, 1)),
    ],
)
def test_narrow_matrices_are_turned_near_the_hbm_bound(shape, permutation, dtype, size):
    program = _exchanged(shape, permutation, dtype)
    bound_us = 2 * int(np.prod(shape)) * size / CORE.dma_bandwidth * 1e6
    assert simulate(program, CORE).duration_ps * 1e-6 < 2 * bound_us + 3
    assert program.dmas["bytes"].sum() == 2 * int(np.prod(shape)) * size


def test_matrices_that_fill_the_tensor_engine_are_turned_there():
    program = _exchanged((256, 256), (1, 0), "f32")
    assert "TRANSPOSE" in opcodes(program)
