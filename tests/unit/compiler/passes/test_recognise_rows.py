"""Look-ups and updates of single elements become those of rows where one index serves a row."""

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.compiler import compile_logical
from neuron_tools.compiler.passes.recognise_rows import recognise_rows
from neuron_tools.records.program import Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, module, tensor

TABLE, PLACES = (4, 8, 6), (4, 3, 6)
_BODY = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
%s = stablehlo.add %a, %b : tensor<f32>
stablehlo.return %s : tensor<f32>
})"""


def elements(opcode, table=TABLE, places=PLACES, *, expanded=True):
    """`torch.gather` or `scatter_add` along the second of three axes, as torch-mlir writes it."""
    column, joined = tensor((*places, 1), "i32"), tensor((*places, 3), "i32")
    index = tensor(places[:2] if expanded else places, "i32")
    axes = "0, 1" if expanded else "0, 1, 2"
    lines = [f"%i = stablehlo.broadcast_in_dim %n, dims = [{axes}] : ({index}) -> {column}"]
    for axis in (0, 2):
        lines += [
            f"%c{axis} = stablehlo.iota dim = 0 : {tensor((places[axis],), 'i32')}",
            f"%w{axis} = stablehlo.broadcast_in_dim %c{axis}, dims = [{axis}] "
            f": ({tensor((places[axis],), 'i32')}) -> {column}",
        ]
    lines.append(
        f"%at = stablehlo.concatenate %w0, %i, %w2, dim = 3 : ({column}, {column}, {column}) -> {joined}"
    )
    read, made = tensor(table), tensor(places)
    if opcode == "gather":
        arguments, result = f"%t: {read}, %n: {index}", made
        lines.append(
            '%r = "stablehlo.gather"(%t, %at) <{dimension_numbers = #stablehlo.gather<'
            "collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 3>, "
            f"slice_sizes = array<i64: 1, 1, 1>}}> : ({read}, {joined}) -> {made}"
        )
    else:
        arguments, result = f"%t: {read}, %n: {index}, %u: {made}", read
        lines.append(
            '%r = "stablehlo.scatter"(%t, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<'
            "inserted_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [0, 1, 2], "
            f"index_vector_dim = 3>}}> {_BODY} : ({read}, {joined}, {made}) -> {read}"
        )
    return f"func.func @main({arguments}) -> {result} {{\n" + "\n".join(lines) + f"\nreturn %r : {result}\n}}"


def indices_of(found, operation, given):
    """The index operand's numbers, computed from the function's index."""
    made_by = {result: each for each in found.operations for result in each.results}

    def value(number):
        if number == found.parameters[1]:
            return given
        each, shape = made_by[number], found.values[number].type.shape
        operands = [value(operand) for operand in each.operands]
        if each.opcode == "iota":
            return np.arange(shape[0])
        if each.opcode == "broadcast_in_dim":
            placed = [1] * len(shape)
            for source, axis in enumerate(each.attributes["broadcast_dimensions"]):
                placed[axis] = operands[0].shape[source]
            return np.broadcast_to(operands[0].reshape(placed), shape)
        if each.opcode == "reshape":
            return operands[0].reshape(shape)
        if each.opcode == "slice":
            return operands[0][tuple(map(slice, each.attributes["limit_indices"]))]
        return np.concatenate(operands, each.attributes["dimension"])

    return value(operation.operands[1])


@pytest.mark.parametrize("opcode", ["gather", "scatter"])
def test_elements_of_expanded_indices_are_rows(opcode):
    found = recognise_rows(module(elements(opcode)))
    operation = found.operations[-1]
    given = np.random.default_rng(1).integers(0, TABLE[1], PLACES[:2])
    np.testing.assert_array_equal(indices_of(found, operation, given), given[..., None])
    numbers = operation.attributes["dimension_numbers" if opcode == "gather" else "scatter_dimension_numbers"]
    assert numbers["operand_batching_dims" if opcode == "gather" else "input_batching_dims"] == (0,)
    window = numbers["offset_dims" if opcode == "gather" else "update_window_dims"]
    assert (window, numbers["index_vector_dim"]) == ((2,), 2)
    if opcode == "gather":
        assert operation.attributes["slice_sizes"] == (1, 1, 6)


@pytest.mark.parametrize("opcode", ["gather", "scatter"])
@pytest.mark.parametrize("change", [{"expanded": False}, {"places": (4, 3, 5)}])
def test_other_elements_stay(opcode, change):
    """An index of its own for each element, and rows of which only a part is wanted."""
    before = module(elements(opcode, **change))
    assert recognise_rows(before).operations == before.operations


def test_rows_take_one_descriptor_each():
    program = compiled(elements("gather", (16, 512, 1024), (16, 20, 1024)))
    assert [operation.opcode for operation in program.hlo] == ["gather"]
    assert simulate(program, CORE).duration_ps < 16e6


def test_two_cores_share_the_batches_of_rows():
    text = elements("gather", (16, 512, 1024), (16, 20, 1024))
    program = compile_logical(recognise_rows(module(text)), hardware.get("trn2", lnc=2))
    stored = [each.dmas[each.dmas["source_memory"] == Memory.SBUF] for each in program.of_cores]
    halves = [int(dmas["bytes"].sum()) for dmas in stored]
    assert halves == [16 * 20 * 1024 * 4 // 2] * 2


def look_up(table=(16, 20, 1024), found=64):
    """`torch.gather` along the last axis, an index for each element, as torch-mlir writes it."""
    places = (*table[:2], found)
    column, joined = tensor((*places, 1), "i32"), tensor((*places, 3), "i32")
    lines = [f"%i = stablehlo.reshape %n : ({tensor(places, 'i32')}) -> {column}"]
    for axis in (0, 1):
        counted = tensor((places[axis],), "i32")
        lines += [
            f"%c{axis} = stablehlo.iota dim = 0 : {counted}",
            f"%w{axis} = stablehlo.broadcast_in_dim %c{axis}, dims = [{axis}] : ({counted}) -> {column}",
        ]
    lines.append(
        f"%at = stablehlo.concatenate %w0, %w1, %i, dim = 3 : ({column}, {column}, {column}) -> {joined}"
    )
    lines.append(
        '%r = "stablehlo.gather"(%t, %at) <{dimension_numbers = #stablehlo.gather<'
        "collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 3>, "
        f"slice_sizes = array<i64: 1, 1, 1>}}> : ({tensor(table)}, {joined}) -> {tensor(places)}"
    )
    head = f"%t: {tensor(table)}, %n: {tensor(places, 'i32')}"
    body = "\n".join(lines)
    return f"func.func @main({head}) -> {tensor(places)} {{\n{body}\nreturn %r : {tensor(places)}\n}}"


@pytest.mark.parametrize("found", [64, 1024, 5000])
def test_each_row_is_looked_into_by_its_own_indices(found):
    program = compiled(look_up(found=found))
    looked = program.instructions[program.instructions["opcode"] == Opcode.LOCAL_GATHER]
    assert int((looked["partitions"].astype(int) * looked["elements"]).sum()) == 16 * 20 * found
    assert program.dmas["descriptor_bytes"].min() >= 4 * min(found, 64)
    moved = program.dmas["bytes"].sum() / 4
    assert moved <= 16 * 20 * (1024 + 4 * found), "table once, indices and elements, no counters"


def test_a_look_up_in_rows_keeps_its_indices():
    operations = recognise_rows(module(look_up())).operations
    gather = next(each for each in operations if each.opcode == "gather")
    assert gather.attributes["dimension_numbers"]["operand_batching_dims"] == (0, 1)
    assert gather.attributes["dimension_numbers"]["start_index_map"] == (2,)


def test_rows_that_do_not_fit_a_partition_are_looked_up_in_memory():
    program = compiled(look_up(table=(2, 3, 1 << 16), found=8))
    assert not (program.instructions["opcode"] == Opcode.LOCAL_GATHER).any()
