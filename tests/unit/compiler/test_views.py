from neuron_tools.compiler.graph import producers
from neuron_tools.compiler.views import Block, Views, contiguous, regrouped
from tests.unit.compiler.modules import function, module

M = "tensor<4x8xf32>"


def view_of_result(text):
    read = module(text)
    return Views(read, producers(read)).of(read.results[0])


def layout_of_result(text):
    read = module(text)
    return Views(read, producers(read)).layout(read.results[0])


def test_a_reshape_is_the_root_itself():
    view = view_of_result(
        function(f"%a: {M}", "tensor<32xf32>", f"%r = stablehlo.reshape %a : ({M}) -> tensor<32xf32>")
    )
    assert (view.root, view.is_plain, view.run_elements) == (0, True, 32)


def test_a_broadcast_along_columns_repeats_rows():
    view = view_of_result(
        function(
            "%a: tensor<4xf32>", M, f"%r = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xf32>) -> {M}"
        )
    )
    assert view.blocks == (Block(4, True), Block(8, False))


def test_a_slice_reads_what_lies_together():
    view = view_of_result(
        function(
            f"%a: {M}", "tensor<2x8xf32>", f"%r = stablehlo.slice %a [1:3, 0:8] : ({M}) -> tensor<2x8xf32>"
        )
    )
    assert view.run_elements == 16
    narrow = view_of_result(
        function(
            f"%a: {M}", "tensor<4x2xf32>", f"%r = stablehlo.slice %a [0:4, 2:4] : ({M}) -> tensor<4x2xf32>"
        )
    )
    assert (narrow.root, narrow.run_elements) == (0, 2)


def test_heads_moved_out_are_read_in_place():
    view = view_of_result(function(
        "%a: tensor<2x4x3x8xf32>", "tensor<2x3x4x8xf32>",
        "%r = stablehlo.transpose %a, dims = [0, 2, 1, 3] : (tensor<2x4x3x8xf32>) -> tensor<2x3x4x8xf32>",
    ))  # fmt: skip
    assert (view.root, view.run_elements) == (0, 8)


def test_a_turned_tensor_must_be_made_but_its_strides_are_known():
    text = function(
        f"%a: {M}",
        "tensor<8x4xf32>",
        f"%r = stablehlo.transpose %a, dims = [1, 0] : ({M}) -> tensor<8x4xf32>",
    )
    assert view_of_result(text).root != 0
    layout = layout_of_result(text)
    assert (layout.root, layout.factors) == (0, ((8, 1), (4, 8)))


def test_a_constant_needs_no_memory():
    view = view_of_result(
        f"func.func @main() -> {M} {{ %r = stablehlo.constant dense<1.0> : {M}\n return %r : {M} }}"
    )
    assert view.root == -1
    assert view.is_scalar


def test_factors_split_and_merge_evenly_or_not_at_all():
    assert regrouped([(12, 1)], (3, 4)) == (((3, 4),), ((4, 1),))
    assert regrouped([(3, 4), (4, 1)], (12,)) == (((3, 4), (4, 1)),)
    assert regrouped([(6, 1)], (4, 2)) is None
    assert contiguous((2, 1, 3)) == (((2, 3),), (), ((3, 1),))
