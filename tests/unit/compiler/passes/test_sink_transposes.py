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
