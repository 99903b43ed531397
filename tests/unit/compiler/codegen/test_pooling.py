"""Pooling: what it moves, how long it takes, and how windows are reduced."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.records.program import Engine, Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import function, module, tensor, tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

aten = torch.ops.aten


def pooled(shape, kernel, stride, padding, dtype, target="trn1"):
    """The Program of a max pooling that gives the places of the maxima, too."""
    image = torch.empty(shape, dtype=dtype, device="meta")
    sizes = [[size] * 2 for size in (kernel, stride, padding)]
    return compile_module(lowered(aten.max_pool2d_with_indices.default, image, *sizes), hardware.get(target))


def hbm_bytes(program):
    dmas = program.dmas
    return [
        int(dmas["bytes"][dmas[f"{side}_memory"] == Memory.HBM].sum()) for side in ("source", "destination")
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [((16, 64, 112, 112), 3, 2, 1), ((32, 64, 64, 64), 2, 2, 0), ((32, 64, 32, 32), 3, 2, 1)],
)
def test_it_takes_little_longer_than_what_it_moves(shape, kernel, stride, padding, dtype):
    program = pooled(shape, kernel, stride, padding, dtype)
    image, windows = torch.Size(shape).numel(), torch.Size(shape).numel() // stride**2
    assert hbm_bytes(program) == [image * dtype.itemsize, windows * (dtype.itemsize + 8)]
    times = 1.5 if dtype is torch.bfloat16 or kernel == 2 else 1.85
    duration_ps = simulate(program, hardware.get("trn1")).duration_ps
    assert duration_ps * 1e-12 <= times * sum(hbm_bytes(program)) / DRAWN_BY_A_CORE


def read_elements(program):
    rows = program.instructions[program.instructions["opcode"] == Opcode.TENSOR_REDUCE]
    return int(rows["elements"].sum())


def test_16_bit_maxima_and_their_places_are_found_by_one_reduction():
    half, whole = (pooled((16, 64, 32, 32), 3, 2, 1, dtype) for dtype in (torch.bfloat16, torch.float32))
    assert read_elements(half) == read_elements(whole) / 2


def test_wide_windows_are_reduced_axis_by_axis():
    near, far = (pooled((16, 64, 32, 32), size, 1, size // 2, torch.bfloat16) for size in (3, 9))
    assert read_elements(far) / read_elements(near) == pytest.approx(9 / 3)


def test_an_engine_that_works_beside_the_vector_engine_takes_one_axis():
    engines = {
        target: set(program.instructions["engine"][program.instructions["opcode"] == Opcode.TENSOR_TENSOR])
        for target in ("trn1", "trn2")
        for program in [pooled((16, 64, 32, 32), 3, 2, 1, torch.float32, target)]
    }
    assert engines == {"trn1": set(), "trn2": {Engine.GPSIMD}}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("target", ["trn1", "trn2"])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [((2, 3, 9, 9), 3, 2, 1), ((1, 1, 200, 300), 5, 3, 2), ((4, 8, 20, 20), 2, 3, 0)],
)
def test_windows_of_every_kind_keep_the_order_of_their_tiles(shape, kernel, stride, padding, dtype, target):
    program = pooled(shape, kernel, stride, padding, dtype, target)
    assert not program.warnings
    assert tile_races(program) == 0
    assert simulate(program, hardware.get(target)).duration_ps > 0


def test_windows_over_one_number_everywhere_read_nothing():
    image, sums = tensor((8, 64, 32, 32)), tensor((8, 64, 16, 16))
    sizes = "window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>"
    text = function(
        f"%a: {sums}", sums,
        "%one = stablehlo.constant dense<1.0> : tensor<f32>",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> {image}",
        f'%counts = "stablehlo.reduce_window"(%ones, %zero) <{{{sizes}}}> ({{',
        "^bb0(%x: tensor<f32>, %y: tensor<f32>):",
        "%s = stablehlo.add %x, %y : tensor<f32>",
        f"stablehlo.return %s : tensor<f32> }}) : ({image}, tensor<f32>) -> {sums}",
        f"%r = stablehlo.divide %a, %counts : {sums}",
    )  # fmt: skip
    program = compile_module(module(text), hardware.get("trn1"))
    written = program.instructions[program.instructions["opcode"] == Opcode.MEMSET]
    assert written["elements"].sum() * 128 >= 8 * 64 * 16 * 16
    assert tile_races(program) == 0
