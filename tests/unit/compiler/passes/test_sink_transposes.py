from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.sink_transposes import sink_transposes
from tests.unit.compiler.modules import function, module, opcode_names, tensor

LYING, TURNED, VECTOR = tensor((4, 8, 16)), tensor((8, 4, 16)), tensor((16,))


def turned(*lines: str, arguments: str = "") -> str:
    return function(
        f"%a: {LYING}, %v: {VECTOR}{arguments}", TURNED,
        f"%t = stablehlo.transpose %a, dims = [1, 0, 2] : ({LYING}) -> {TURNED}", *lines,
    )  # fmt: skip


def sunk(text: str):
    return eliminate_dead_code(sink_transposes(module(text)))


def test_elementwise_operations_come_before_the_transpose():
    after = sunk(
        turned(
            f"%b = stablehlo.broadcast_in_dim %v, dims = [2] : ({VECTOR}) -> {TURNED}",
            f"%m = stablehlo.multiply %t, %b : {TURNED}",
            f"%r = stablehlo.tanh %m : {TURNED}",
        )
    )
    assert opcode_names(after) == ["broadcast_in_dim", "multiply", "tanh", "transpose"]
    assert after.values[after.operations[1].results[0]].type.shape == (4, 8, 16)
    assert after.values[after.results[0]].type.shape == (8, 4, 16)


def test_an_operand_that_lies_as_it_is_keeps_the_transpose_before():
    after = sunk(turned(f"%r = stablehlo.add %t, %x : {TURNED}", arguments=f", %x: {TURNED}"))
    assert opcode_names(after) == ["transpose", "add"]


def test_slices_and_concatenations_take_their_axis_along():
    half = tensor((8, 4, 8))
    after = sunk(
        turned(
            f"%l = stablehlo.slice %t [0:8, 0:4, 0:8] : ({TURNED}) -> {half}",
            f"%h = stablehlo.slice %t [0:8, 0:4, 8:16] : ({TURNED}) -> {half}",
            f"%r = stablehlo.concatenate %h, %l, dim = 2 : ({half}, {half}) -> {TURNED}",
        )
    )
    assert opcode_names(after) == ["slice", "slice", "concatenate", "transpose"]
    first = after.operations[0]
    assert first.attributes["limit_indices"] == (4, 8, 8)
    assert after.operations[2].attributes["dimension"] == 2


def test_axes_of_one_element_hold_no_broadcast_back():
    row = tensor((1, 1, 16))
    after = sunk(
        turned(
            f"%b = stablehlo.broadcast_in_dim %w, dims = [0, 1, 2] : ({row}) -> {TURNED}",
            f"%r = stablehlo.multiply %t, %b : {TURNED}",
            arguments=f", %w: {row}",
        )
    )
    assert opcode_names(after) == ["reshape", "broadcast_in_dim", "multiply", "transpose"]
    assert after.operations[1].attributes["broadcast_dimensions"] == (2,)


LYING_ROWS, TURNED_ROWS = tensor((5, 16, 8)), tensor((5, 8, 16))


def chosen(experts: int, result: str, *lines: str):
    """Five matrices, some of them twice, of so many that were transposed."""
    table, turned_table = tensor((experts, 16, 8)), tensor((experts, 8, 16))
    choose = (
        '%g = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
        f"array<i64: 1, 8, 16>}}> : ({turned_table}, tensor<5x1xi32>) -> {TURNED_ROWS}"
    )
    return sunk(
        function(
            f"%w: {table}, %i: tensor<5x1xi32>", result,
            f"%t = stablehlo.transpose %w, dims = [0, 2, 1] : ({table}) -> {turned_table}", choose, *lines,
        )
    )  # fmt: skip


def test_rows_that_are_chosen_and_turned_back_are_chosen_as_they_lie():
    back = f"%r = stablehlo.transpose %g, dims = [0, 2, 1] : ({TURNED_ROWS}) -> {LYING_ROWS}"
    after = chosen(4, LYING_ROWS, back)
    assert opcode_names(after) == ["gather", "transpose", "transpose"]
    assert after.operations[0].attributes["slice_sizes"] == (1, 16, 8)
    assert after.values[after.operations[0].results[0]].type.shape == (5, 16, 8)


def test_few_rows_are_chosen_before_they_are_turned():
    assert opcode_names(chosen(6, TURNED_ROWS, f"%r = stablehlo.tanh %g : {TURNED_ROWS}")) == [
        "gather", "tanh", "transpose",
    ]  # fmt: skip


def test_more_rows_than_there_are_stay_behind_the_transpose():
    after = chosen(4, TURNED_ROWS, f"%r = stablehlo.tanh %g : {TURNED_ROWS}")
    assert opcode_names(after) == ["transpose", "gather", "tanh"]
