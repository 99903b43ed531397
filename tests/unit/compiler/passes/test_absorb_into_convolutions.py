"""Movements around convolutions that convolutions say themselves."""

from __future__ import annotations

import pytest

from neuron_tools.compiler.passes.absorb_into_convolutions import absorb_into_convolutions
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.pipeline import optimise
from tests.unit.compiler.modules import function, module, tensor

IMAGE, KERNEL = tensor((2, 8, 10, 10)), tensor((4, 8, 3, 3))


def convolved(image: str, kernel: str, types: tuple[str, str, str], name: str = "r") -> str:
    """A line of a module."""
    return (
        f"%{name} = stablehlo.convolution(%{image}, %{kernel}) "
        "dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        f": ({types[0]}, {types[1]}) -> {types[2]}"
    )


def absorbed(*lines: str, result: str):
    made = module(function(f"%a: {IMAGE}, %k: {KERNEL}", result, *lines))
    return eliminate_dead_code(absorb_into_convolutions(made)).operations


def padded(value: str, low: str, high: str, interior: str, wide: str) -> tuple[str, str]:
    """A constant and a pad of the image with it."""
    return (
        f"%z = stablehlo.constant dense<{value}> : tensor<f32>",
        f"%p = stablehlo.pad %a, %z, low = {low}, high = {high}, interior = {interior} "
        f": ({IMAGE}, tensor<f32>) -> {wide}",
    )


def test_reversed_taps_are_read_in_the_other_order():
    result = tensor((2, 4, 10, 10))
    operations = absorbed(
        f"%v = stablehlo.reverse %k, dims = [2, 3] : {KERNEL}", convolved("a", "v", (IMAGE, KERNEL, result)),
        result=result,
    )  # fmt: skip
    assert [operation.opcode for operation in operations] == ["convolution"]
    assert operations[0].attributes["window_reversal"] == (True, True)


def test_taps_are_read_in_the_other_order_through_movements_that_keep_them():
    taken_apart, turned, result = tensor((2, 2, 8, 3, 3)), tensor((2, 8, 2, 3, 3)), tensor((2, 4, 10, 10))
    operations = absorbed(
        f"%v = stablehlo.reverse %k, dims = [2, 3] : {KERNEL}",
        f"%s = stablehlo.reshape %v : ({KERNEL}) -> {taken_apart}",
        f"%t = stablehlo.transpose %s, dims = [1, 2, 0, 3, 4] : ({taken_apart}) -> {turned}",
        f"%w = stablehlo.reshape %t : ({turned}) -> {tensor((4, 8, 3, 3))}",
        convolved("a", "w", (IMAGE, KERNEL, result)),
        result=result,
    )  # fmt: skip
    assert [operation.opcode for operation in operations] == [
        "reshape",
        "transpose",
        "reshape",
        "convolution",
    ]
    assert operations[-1].attributes["window_reversal"] == (True, True)


def test_reversed_taps_that_were_merged_stay_reversed():
    result, one_row = tensor((2, 4, 10, 8)), tensor((4, 8, 1, 9))
    kept = absorbed(
        f"%v = stablehlo.reverse %k, dims = [3] : {KERNEL}",
        f"%s = stablehlo.reshape %v : ({KERNEL}) -> {one_row}",
        convolved("a", "s", (IMAGE, one_row, result)).replace(
            "pad = [[1, 1], [1, 1]]", "pad = [[0, 0], [3, 3]]"
        ),
        result=result,
    )
    assert [operation.opcode for operation in kept] == ["reverse", "reshape", "convolution"]


def test_reversed_channels_stay_reversed():
    result = tensor((2, 4, 10, 10))
    operations = absorbed(
        f"%v = stablehlo.reverse %k, dims = [1, 3] : {KERNEL}", convolved("a", "v", (IMAGE, KERNEL, result)),
        result=result,
    )  # fmt: skip
    assert [operation.opcode for operation in operations] == ["reverse", "convolution"]


def test_a_transpose_of_the_result_names_its_dimensions():
    before, after = tensor((2, 4, 10, 10)), tensor((4, 2, 10, 10))
    operations = absorbed(
        convolved("a", "k", (IMAGE, KERNEL, before), "c"),
        f"%r = stablehlo.transpose %c, dims = [1, 0, 2, 3] : ({before}) -> {after}", result=after,
    )  # fmt: skip
    assert [operation.opcode for operation in operations] == ["convolution"]
    assert tuple(operations[0].attributes["dimension_numbers"]["output"]) == ("f", "b", "0", "1")


def test_a_result_that_others_read_too_stays_as_it_is():
    before, after = tensor((2, 4, 10, 10)), tensor((4, 2, 10, 10))
    operations = absorbed(
        convolved("a", "k", (IMAGE, KERNEL, before), "c"),
        f"%t = stablehlo.transpose %c, dims = [1, 0, 2, 3] : ({before}) -> {after}",
        f"%u = stablehlo.transpose %c, dims = [1, 0, 2, 3] : ({before}) -> {after}",
        f"%w = stablehlo.add %c, %c : {before}",
        f"%x = stablehlo.transpose %w, dims = [1, 0, 2, 3] : ({before}) -> {after}",
        f"%y = stablehlo.add %t, %u : {after}", f"%r = stablehlo.add %x, %y : {after}", result=after,
    )  # fmt: skip
    assert sum(operation.opcode == "transpose" for operation in operations) == 3


@pytest.mark.parametrize(
    ("pad", "stays"),
    [
        (("0.0", "[0, 0, 1, 1]", "[0, 0, 2, 0]", "[0, 0, 0, 0]", tensor((2, 8, 13, 11))), False),
        (("1.0", "[0, 0, 1, 1]", "[0, 0, 2, 0]", "[0, 0, 0, 0]", tensor((2, 8, 13, 11))), True),
        (("0.0", "[0, 0, 0, 0]", "[0, 0, 0, 0]", "[0, 0, 1, 1]", tensor((2, 8, 19, 19))), True),
    ],
)
def test_zeros_around_the_image_are_the_convolutions_padding(pad, stays):
    rows, columns = (int(extent) for extent in pad[4].removeprefix("tensor<").split("x")[2:4])
    result = tensor((2, 4, rows, columns))
    operations = absorbed(*padded(*pad), convolved("p", "k", (pad[4], KERNEL, result)), result=result)
    assert any(operation.opcode == "pad" for operation in operations) == stays
    if not stays:
        assert operations[-1].attributes["padding"] == (2, 3, 2, 1)


def test_an_update_by_a_transposed_gradient_leaves_no_transpose_behind():
    """What follows the transpose, the optimizer's step, must not carry it away from the convolution."""
    result = tensor((4, 2, 10, 10))
    text = function(
        f"%a: {IMAGE}, %k: {KERNEL}, %w: {result}",
        result,
        convolved("a", "k", (IMAGE, KERNEL, tensor((2, 4, 10, 10))), "c"),
        f"%t = stablehlo.transpose %c, dims = [1, 0, 2, 3] : ({tensor((2, 4, 10, 10))}) -> {result}",
        f"%l = stablehlo.constant dense<0.1> : {result}",
        f"%s = stablehlo.multiply %t, %l : {result}",
        f"%r = stablehlo.add %w, %s : {result}",
    )
    opcodes = [operation.opcode for operation in optimise(module(text)).operations]
    assert "convolution" in opcodes
    assert "transpose" not in opcodes


def patches(axes: str, *, merged: tuple[int, ...] = (2, 4, 100)):
    """A convolution with a bias, its pixels merged and its axes put in another order."""
    before = tensor((2, 4, 10, 10))
    order = [int(axis) for axis in axes]
    together, after = tensor(merged), tensor([merged[axis] for axis in order])
    made = module(function(
        f"%a: {IMAGE}, %k: {KERNEL}, %b: tensor<4xf32>", after,
        convolved("a", "k", (IMAGE, KERNEL, before), "c"),
        f"%s = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> {before}",
        f"%d = stablehlo.add %c, %s : {before}",
        f"%m = stablehlo.reshape %d : ({before}) -> {together}",
        f"%r = stablehlo.transpose %m, dims = {order} : ({together}) -> {after}",
    ))  # fmt: skip
    return eliminate_dead_code(absorb_into_convolutions(made))


def test_patches_are_written_as_rows_with_their_bias():
    found = patches("021")
    assert [operation.opcode for operation in found.operations] == [
        "convolution",
        "broadcast_in_dim",
        "add",
        "reshape",
    ]
    convolution, spread, added, _ = found.operations
    assert tuple(convolution.attributes["dimension_numbers"]["output"]) == ("b", "0", "1", "f")
    assert tuple(spread.attributes["broadcast_dimensions"]) == (3,)
    assert found.values[added.results[0]].type.shape == (2, 10, 10, 4)
    assert found.values[found.results[0]].type.shape == (2, 100, 4)


def test_a_reshape_that_cuts_axes_apart_keeps_the_transpose():
    found = patches("021", merged=(2, 2, 200))
    assert found.operations[-1].opcode == "transpose"
