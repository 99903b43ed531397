"""Scatters of elements whose indices count through whole axes become scatters of rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.compiler.passes.recognise_windows import recognise_windows
from neuron_tools.records.program import Memory
from neuron_tools.simulator.check import check
from tests.unit.compiler.modules import CORE, function, module, tensor

HEADS, LENGTH, DEPTH, NEW = 8, 512, 64, 4


def element_scatter(batch: int, *, wanted: str = "iota", heads: int = HEADS) -> str:
    """`index_copy_(2, places, new)` on [batch, heads, length, depth] as one index per element."""
    cache = tensor((batch, HEADS, LENGTH, DEPTH), "bf16")
    shape = (batch, heads, NEW, DEPTH)
    update, one, all_ = tensor(shape, "bf16"), tensor((*shape, 1), "i64"), tensor((*shape, 4), "i64")
    lines = ["%zero = stablehlo.constant dense<0> : tensor<i64>"]
    for axis, extent in enumerate(shape):
        part, name = tensor((extent,), "i64"), f"%p{axis}"
        if axis == 2 or (axis == 1 and wanted == "given"):
            source = f"%i{axis}"
        elif extent == 1:
            lines += [f"{name} = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<i64>) -> {one}"]
            continue
        else:
            source = f"%c{axis}"
            lines += [f"{source} = stablehlo.iota dim = 0 : {part}"]
        lines += [f"{name} = stablehlo.broadcast_in_dim {source}, dims = [{axis}] : ({part}) -> {one}"]
    lines += [
        f"%all = stablehlo.concatenate %p0, %p1, %p2, %p3, dim = 4 : ({one}, {one}, {one}, {one}) -> {all_}",
        f"""%r = "stablehlo.scatter"(%cache, %all, %u) <{{
          scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1, 2, 3],
            scatter_dims_to_operand_dims = [0, 1, 2, 3], index_vector_dim = 4>}}> ({{
          ^bb0(%old: tensor<bf16>, %new: tensor<bf16>):
            stablehlo.return %new : tensor<bf16>
        }}) : ({cache}, {all_}, {update}) -> {cache}""",
    ]
    given = f"%i1: {tensor((heads,), 'i64')}, %i2: {tensor((NEW,), 'i64')}"
    head = f"func.func @main(%cache: {cache}, {given}, %u: {update}) -> {cache} {{\n"
    return head + "\n".join(lines) + f"\nreturn %r : {cache}\n}}"


def scatter_of(known):
    (found,) = (operation for operation in known.operations if operation.opcode == "scatter")
    return found, found.attributes["scatter_dimension_numbers"]


@pytest.mark.parametrize("batch", [1, 3])
def test_axes_that_are_counted_through_are_windows(batch):
    known = recognise_windows(module(element_scatter(batch)))
    operation, numbers = scatter_of(known)
    assert numbers["update_window_dims"] == (0, 1, 3)
    assert numbers["inserted_window_dims"] == numbers["scatter_dims_to_operand_dims"] == (2,)
    assert known.values[operation.operands[1]].type.shape == (NEW, 1)
    assert numbers["index_vector_dim"] == 1


@pytest.mark.parametrize("batch", [1, 3])
def test_rows_are_written_whole(batch):
    program = compile_module(replace(module(element_scatter(batch)), aliases=((0, 0),)), CORE)
    check(program, CORE)
    written = program.dmas[program.dmas["destination_memory"] == Memory.HBM]
    assert set(written["descriptor_bytes"].tolist()) == {DEPTH * 2}
    assert written["bytes"].sum() == batch * HEADS * NEW * DEPTH * 2
    loaded = program.dmas[program.dmas["destination_memory"] == Memory.SBUF]
    assert loaded["bytes"].sum() < written["bytes"].sum() + 1024


def test_axes_with_indices_of_their_own_stay_single():
    _, numbers = scatter_of(recognise_windows(module(element_scatter(3, wanted="given"))))
    assert numbers["update_window_dims"] == (0, 3)
    assert numbers["scatter_dims_to_operand_dims"] == (1, 2)


def test_a_part_of_an_axis_is_no_window():
    _, numbers = scatter_of(recognise_windows(module(element_scatter(3, heads=HEADS // 2))))
    assert numbers["update_window_dims"] == (0, 3)


def test_the_indices_are_read_from_where_they_are():
    known = optimise(module(element_scatter(3)))
    assert {operation.opcode for operation in known.operations} == {"scatter", "reshape"}


def selected(count: int, *, counts: bool = True) -> list[str]:
    """Opcodes of `index_select(x, 1, places)` on 4 x 255 x 8 elements."""
    table, made = tensor((4, 255, 8)), tensor((4, count, 8))
    places, given = tensor((count,), "i64"), "" if counts else f", %i: {tensor((count,), 'i64')}"
    text = function(
        f"%x: {table}{given}", made, *([f"%i = stablehlo.iota dim = 0 : {places}"] if counts else []),
        '%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], '
        "collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, "
        f"slice_sizes = array<i64: 4, 1, 8>}}> : ({table}, {places}) -> {made}",
    )  # fmt: skip
    return [operation.opcode for operation in recognise_windows(module(text)).operations]


def test_places_that_count_are_a_slice():
    assert selected(128) == ["iota", "slice"]
    assert selected(255) == ["iota", "slice"]


def test_places_beyond_the_end_or_given_are_looked_up():
    assert selected(300) == ["iota", "gather"]
    assert selected(128, counts=False) == ["gather"]


def test_places_in_rows_of_their_own_are_looked_up():
    table, places, made = tensor((4, 255)), tensor((128, 1), "i64"), tensor((4, 128, 1))
    text = function(
        f"%x: {table}", made, f"%i = stablehlo.iota dim = 0 : {places}",
        '%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], '
        "collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, "
        f"slice_sizes = array<i64: 4, 1>}}> : ({table}, {places}) -> {made}",
    )  # fmt: skip
    operations = recognise_windows(module(text)).operations
    assert [operation.opcode for operation in operations] == ["iota", "gather"]


ROWS, CLASSES = 64, 1000


def one_element_a_row(*, operand: str = "zeros", combined: str = "%new", per_row: int = 1) -> str:
    """`zeros.scatter(1, places, update)`, as the gradient of a loss of class numbers has it."""
    whole, update = tensor((ROWS, CLASSES)), tensor((ROWS, per_row))
    one, both = tensor((ROWS, per_row, 1), "i64"), tensor((ROWS, per_row, 2), "i64")
    lines = [
        f"%zeros = stablehlo.constant dense<0.0> : {whole}",
        f"%c = stablehlo.iota dim = 0 : {tensor((ROWS,), 'i64')}",
        f"%row = stablehlo.broadcast_in_dim %c, dims = [0] : ({tensor((ROWS,), 'i64')}) -> {one}",
        f"%place = stablehlo.reshape %i : ({tensor((ROWS, per_row), 'i64')}) -> {one}",
        f"%all = stablehlo.concatenate %row, %place, dim = 2 : ({one}, {one}) -> {both}",
        f"""%r = "stablehlo.scatter"(%{operand}, %all, %u) <{{
          scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1],
            scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}}> ({{
          ^bb0(%old: tensor<f32>, %new: tensor<f32>):
            %sum = stablehlo.add %old, %new : tensor<f32>
            stablehlo.return {combined} : tensor<f32>
        }}) : ({whole}, {both}, {update}) -> {whole}""",
    ]
    given = f"%given: {whole}, %i: {tensor((ROWS, per_row), 'i64')}, %u: {update}"
    return f"func.func @main({given}) -> {whole} {{\n" + "\n".join(lines) + f"\nreturn %r : {whole}\n}}"


def test_one_element_a_row_of_equal_numbers_is_a_choice_by_place():
    program = compile_module(module(one_element_a_row()), CORE)
    assert [row.opcode for row in program.hlo] == ["fusion"]
    moved = program.dmas["bytes"].sum()
    assert moved < 1.1 * ROWS * CLASSES * 4


@pytest.mark.parametrize("other", [{"operand": "given"}, {"combined": "%sum"}, {"per_row": 2}])
def test_other_scatters_of_elements_are_kept(other):
    assert scatter_of(optimise(module(one_element_a_row(**other))))
