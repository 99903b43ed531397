"""Convolutions of few channels, of groups, and gradients of kernels: how they fill the partitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuron_tools.compiler.codegen.window_forms import (
    Form,
    by_columns,
    by_rows,
    forms_of,
    joined_groups,
    quickest_form,
)
from neuron_tools.compiler.codegen.windows import Window
from neuron_tools.compiler.compile import compile_module
from neuron_tools.records.program import Opcode, Program, TensorKind
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, function, module, tensor, tile_races
from tests.unit.compiler.operators import lowered

LONG_RUNS = {Form("taps"): 512, Form("rows"): 512, Form("pixels"): 512}


def window(**sizes: int) -> Window:
    """A window of the gradient of a 3 x 3 kernel of 64 channels, with some sizes changed."""
    base = {
        "images": 64, "groups": 1, "inputs": 16, "outputs": 64, "taps": 1024, "tap_rows": 32,
        "input_pixels": 1024, "output_pixels": 9, "input_row": 32, "output_row": 3, "stride": 1,
    }  # fmt: skip
    chosen = {**base, **sizes}
    rows = {f"{side}_rows": chosen[f"{side}_pixels"] // chosen[f"{side}_row"] for side in ("input", "output")}
    return Window(**chosen, **rows, channels_last=False, packs_taps=True)


def gradient(channels: int, outputs: int, side: int, groups: int = 1) -> Program:
    """The gradient of a 3 x 3 kernel over four images, as the backward pass states it."""
    per_group = channels // groups
    image = tensor((per_group, 4 * groups, side, side))
    kernel, result = tensor((outputs, 4, side, side)), tensor((per_group, outputs, 3, 3))
    turned = tensor((outputs, per_group, 3, 3))
    text = function(
        f"%a: {image}, %g: {kernel}", turned,
        "%c = stablehlo.convolution(%a, %g) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} "
        f": ({image}, {kernel}) -> {result}",
        f"%r = stablehlo.transpose %c, dims = [1, 0, 2, 3] : ({result}) -> {turned}",
    )  # fmt: skip
    return compile_module(module(text), CORE)


def grouped(groups: int, channels: int = 96) -> Program:
    """A 3 x 3 convolution whose channels are apart in groups."""
    image, kernel = tensor((2, channels, 28, 28)), tensor((channels, channels // groups, 3, 3))
    text = function(
        f"%a: {image}, %k: {kernel}", image,
        "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} "
        f": ({image}, {kernel}) -> {image}",
    )  # fmt: skip
    return compile_module(module(text), CORE)


def short_share(program: Program, shortest: int) -> float:
    """Share of the DMA bytes that move in shorter pieces."""
    dmas = program.dmas
    return float(dmas["bytes"][dmas["descriptor_bytes"] < shortest].sum() / dmas["bytes"].sum())


@pytest.mark.parametrize(("channels", "outputs", "side"), [(64, 64, 32), (3, 64, 64), (256, 64, 14)])
def test_gradients_of_kernels_load_long_pieces(channels, outputs, side):
    program = gradient(channels, outputs, side)
    assert short_share(program, 64) < 0.01
    assert tile_races(program) == 0


def test_gradients_are_made_in_the_order_that_is_wanted():
    assert [row.opcode for row in gradient(64, 64, 32).hlo] == ["convolution"]


def test_groups_share_the_array():
    depthwise, dense = grouped(96), grouped(1)
    products = [
        program.instructions[program.instructions["opcode"] == Opcode.MATMUL]
        for program in (depthwise, dense)
    ]
    assert products[0]["partitions"].max() == 96
    assert int(products[0]["elements"].sum()) == int(products[1]["elements"].sum())
    weights = 96 * 9 * 4
    loaded = depthwise.dmas["bytes"][depthwise.dmas["bytes"] == weights]
    assert len(loaded) == 1, "the kernel's own bytes are loaded, the zeros beside it are made on chip"
    assert simulate(depthwise, CORE).duration_ps < 1.5 * simulate(dense, CORE).duration_ps


def test_gradients_of_grouped_kernels_keep_their_own_columns():
    program = gradient(96, 96, 28, groups=96)
    assert tile_races(program) == 0
    stored = sum(
        program.dmas["bytes"][program.dmas["tensor"] == index].sum()
        for index, item in enumerate(program.tensors)
        if item.kind is TensorKind.OUTPUT
    )
    assert stored == 96 * 9 * 4


def test_the_quickest_form_follows_what_lies_together():
    assert quickest_form(CORE, window(), 4, LONG_RUNS).name in ("rows", "pixels")
    narrow = window(images=3, inputs=16, taps=112 * 112, tap_rows=112, input_pixels=224 * 224, input_row=224)
    assert quickest_form(CORE, narrow, 4, LONG_RUNS) == Form("rows")
    small = window(images=512, taps=49, tap_rows=7, input_pixels=49, input_row=7)
    assert quickest_form(CORE, small, 2, LONG_RUNS) == Form("pixels")


def test_rows_beside_channels_keep_the_contraction():
    before = window()
    after = by_rows(before, Form("rows"))
    assert after.inputs * after.taps == before.inputs * before.taps
    assert (after.inputs, after.taps, after.tap_rows) == (16 * 32, 32, 1)
    assert not after.packs_taps


@pytest.mark.parametrize(
    ("groups", "inputs", "count"), [(96, 1, 96), (32, 4, 32), (2, 128, None), (256, 1, 128)]
)
def test_groups_join_up_to_the_arrays_size(groups, inputs, count):
    joined = joined_groups(CORE, window(groups=groups, inputs=inputs, outputs=inputs, taps=9, tap_rows=3))
    assert (joined.count if joined else None) == count


def test_columns_of_joined_gradients_fit_the_sums():
    joined = joined_groups(CORE, window(groups=128, images=1, outputs=1, output_pixels=49))
    assert joined is not None
    assert joined.count * joined.columns * 4 <= CORE.psum_banks // 2 * CORE.psum_bank_bytes
    assert np.gcd(joined.count, 128) == joined.count


def test_several_rows_share_a_partition_where_enough_partitions_are_left():
    """One row of 32 pixels in bf16 is a piece of 64 bytes; eight lie together."""
    runs = {form: 32 * form.rows for form in forms_of(CORE, window(inputs=32), 2)}
    assert quickest_form(CORE, window(inputs=32), 2, runs) == Form("rows", 8)
    few = window(inputs=3, taps=49, tap_rows=7, input_pixels=224 * 224, input_row=224)
    assert quickest_form(CORE, few, 2, dict.fromkeys(forms_of(CORE, few, 2), 3)).rows == 1


@pytest.mark.parametrize("spacing", [1, 2])
def test_rows_together_hold_the_image_rows_that_they_meet(spacing):
    before = window(tap_spacing=spacing)
    after = by_rows(before, Form("rows", 4))
    assert after.inputs * after.taps == before.inputs * before.taps
    assert (after.inputs, after.taps) == (16 * 8, 32 * 4)
    assert after.input_pixels == (3 + 3 * spacing) * 32


def test_columns_keep_the_contraction_and_the_results():
    before = window()
    after = by_columns(before)
    assert after.inputs * after.taps == before.inputs * before.taps
    assert after.column_elements == before.column_elements
    assert (after.inputs, after.taps, after.images, after.output_pixels) == (16 * 32, 32, 64 * 3, 3)


def kernel_gradient(sizes: tuple[tuple[int, ...], ...], padding: int, groups: int = 1) -> Program:
    """A kernel's gradient in bf16, from the sizes of the result's gradient, the image and the kernel."""
    tensors = [torch.empty(size, dtype=torch.bfloat16, device="meta") for size in sizes]
    window = [1, 1], [padding, padding], [1, 1], False, [0, 0], groups
    target = torch.ops.aten.convolution_backward.default
    return compile_module(lowered(target, *tensors, [sizes[2][0]], *window, [False, True, False]), CORE)


def test_gradients_of_kernels_hold_columns_of_the_image_for_all_rows_of_the_window():
    """Each image is loaded once a column of the kernel, not once a tap."""
    images = (8, 96, 56, 56)
    program = kernel_gradient((images, images, (96, 1, 7, 7)), 3, groups=96)
    assert tile_races(program) == 0
    assert program.dmas["bytes"].sum() < (7 + 4) * 2 * np.prod(images)


def test_gradients_of_kernels_of_one_tap_turn_nothing_beforehand():
    program = kernel_gradient(((16, 64, 56, 56), (16, 256, 56, 56), (64, 256, 1, 1)), 0)
    assert tile_races(program) == 0
    assert all(item.kind is not TensorKind.INTERMEDIATE for item in program.tensors)


def test_rows_together_fit_beside_other_tiles():
    wide = window(input_row=112, input_pixels=112 * 112, tap_rows=112, taps=112 * 112)
    held = max(form.held_rows(wide) for form in forms_of(CORE, wide, 2))
    assert 3 < held <= CORE.sbuf_bytes_per_partition / 4 / (64 * 112 * 2)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("channels", "pixels"), [(8, 64), (16, 400), (512, 1000)])
def test_gradients_of_kernels_along_one_axis_are_compiled(channels, pixels, stride):
    made = (pixels - 1) // stride + 1
    image, kernel, change = (
        torch.empty(shape, device="meta")
        for shape in ((2, channels, pixels), (16, channels, 3), (2, 16, made))
    )
    target = torch.ops.aten.convolution_backward.default
    arguments = (change, image, kernel, [16], [stride], [1], [1], False, [0], 1, [True, True, True])
    program = compile_module(lowered(target, *arguments), CORE)
    assert tile_races(program) == 0
    assert (program.instructions["opcode"] == Opcode.MATMUL).any()
