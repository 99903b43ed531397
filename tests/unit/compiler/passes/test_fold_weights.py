"""What of weights is computed when a model is compiled."""

from neuron_tools.compiler.passes.fold_weights import fold_weights
from tests.unit.compiler.modules import function, module, tensor

ROWS = "offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2"


def opcodes(*lines: str, arguments: str, result: str, kinds: tuple[str, ...]) -> list[str]:
    read = module(function(arguments, result, *lines), parameter_kinds=kinds)
    return [operation.opcode for operation in fold_weights(read).operations]


def biases(arguments: str, kinds: tuple[str, ...], *places: str) -> list[str]:
    """Biases picked from a table of 8 rows of 4, with the heads in front, added to scores."""
    index, picked, scores = tensor((16, 16), "i32"), tensor((16, 16, 4)), tensor((4, 16, 16))
    return opcodes(
        *places,
        f"%p = \"stablehlo.gather\"(%t, %i) <{{dimension_numbers = #stablehlo.gather<{ROWS}>, "
        f"slice_sizes = array<i64: 1, 4>}}> : (tensor<8x4xf32>, {index}) -> {picked}",
        f"%h = stablehlo.transpose %p, dims = [2, 0, 1] : ({picked}) -> {scores}",
        f"%r = stablehlo.add %s, %h : {scores}",
        arguments=f"%s: {scores}, %t: tensor<8x4xf32>{arguments}", result=scores, kinds=kinds,
    )  # fmt: skip


def test_rows_that_known_places_pick_from_a_weight_are_stored_in_the_order_read():
    index = tensor((16, 16), "i32")
    counted = f"%i = stablehlo.iota dim = 0 : {index}"
    assert biases("", ("input", "weight"), counted) == ["constant", "add"]
    assert biases(f", %i: {index}", ("input", "weight", "weight")) == ["constant", "add"]


def test_rows_that_an_input_picks_are_not_known():
    index = tensor((16, 16), "i32")
    assert "gather" in biases(f", %i: {index}", ("input", "weight", "input"))
    assert "gather" in biases("", ("input", "input"), f"%i = stablehlo.iota dim = 0 : {index}")


def test_what_spreads_a_weight_is_not_stored():
    wide = tensor((16, 8))
    assert opcodes(
        f"%w = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> {wide}",
        f"%r = stablehlo.add %x, %w : {wide}",
        arguments=f"%x: {wide}, %v: tensor<8xf32>", result=wide, kinds=("input", "weight"),
    ) == ["broadcast_in_dim", "add"]  # fmt: skip


def test_counted_values_are_stored_in_the_order_read():
    scores = tensor((4, 16, 16))
    windows = tensor((4, 4, 4, 4), "i32")
    places = opcodes(
        f"%i = stablehlo.iota dim = 1 : {windows}", f"%j = stablehlo.iota dim = 3 : {windows}",
        f"%k = stablehlo.add %i, %j : {windows}",
        f"%t = stablehlo.transpose %k, dims = [0, 2, 1, 3] : ({windows}) -> {windows}",
        f"%m = stablehlo.reshape %t : ({windows}) -> {tensor((16, 16), 'i32')}",
        f"%f = stablehlo.convert %m : ({tensor((16, 16), 'i32')}) -> {tensor((16, 16))}",
        f"%b = stablehlo.broadcast_in_dim %f, dims = [1, 2] : ({tensor((16, 16))}) -> {scores}",
        f"%r = stablehlo.add %s, %b : {scores}",
        arguments=f"%s: {scores}", result=scores, kinds=("input",),
    )  # fmt: skip
    assert "iota" not in places
    assert "transpose" not in places


def test_a_product_of_weights_is_stored_where_it_is_no_larger():
    square = tensor((16, 16))
    assert opcodes(
        f"%i = stablehlo.iota dim = 0 : {square}",
        f"%p = stablehlo.dot_general %i, %w, contracting_dims = [1] x [0] : ({square}, {square}) -> {square}",
        f"%r = stablehlo.add %x, %p : {square}",
        arguments=f"%x: {square}, %w: {square}", result=square, kinds=("input", "weight"),
    ) == ["constant", "add"]  # fmt: skip
