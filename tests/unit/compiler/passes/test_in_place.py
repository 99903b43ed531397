"""Which updates are written into the memory of what they update, and what that saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.pipeline import plan_module
from neuron_tools.compiler.passes.repetition import find_repetitions
from neuron_tools.records.program import Memory, Purpose
from neuron_tools.simulator import simulate
from neuron_tools.simulator.check import check
from tests.unit.compiler.modules import CORE, function, module, moved, tensor

ROWS, WIDTH, NEW = 4096, 256, 8
CACHE, UPDATE = tensor((ROWS, WIDTH), "bf16"), tensor((NEW, WIDTH), "bf16")
INDEX, START = tensor((NEW, 1), "i32"), "tensor<i32>"
ARGUMENTS = f"%cache: {CACHE}, %i: {INDEX}, %u: {UPDATE}"


def scatter(result: str, cache: str, update: str = "%u") -> str:
    return f"""
    {result} = "stablehlo.scatter"({cache}, %i, {update}) <{{
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%old: tensor<bf16>, %new: tensor<bf16>):
        stablehlo.return %new : tensor<bf16>
    }}) : ({CACHE}, {INDEX}, {UPDATE}) -> {CACHE}"""


def gather(result: str, cache: str) -> str:
    return f"""
    {result} = "stablehlo.gather"({cache}, %i) <{{
      dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
        start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, {WIDTH}>}}>
      : ({CACHE}, {INDEX}) -> {UPDATE}"""


def slice_update(result: str, cache: str) -> str:
    return (
        f"{result} = stablehlo.dynamic_update_slice {cache}, %u, %s, %z : "
        f"({CACHE}, {UPDATE}, {START}, {START}) -> {CACHE}"
    )


def updated(*lines: str, aliases=((0, 0),), results: str = "%r", types: str = CACHE):
    """(plan, program) of a function whose result may have the memory of its first parameter."""
    text = f"""func.func @main({ARGUMENTS}, %s: {START}) -> ({types}) {{
      %z = stablehlo.constant dense<0> : {START}
      {" ".join(lines)}
      return {results} : {types}
    }}"""
    known = replace(module(text), aliases=tuple(aliases))
    program = compile_module(known, CORE)
    check(program, CORE)
    return plan_module(known, CompilerOptions()), program


def copied(program) -> int:
    return moved(program, Memory.HBM, Memory.HBM)


@pytest.mark.parametrize("update", [scatter, slice_update])
def test_an_update_of_a_donated_parameter_moves_its_rows_only(update):
    _, program = updated(update("%r", "%cache"))
    written = program.dmas[program.dmas["destination_memory"] == Memory.HBM]
    assert written["bytes"].sum() == NEW * WIDTH * 2
    assert set(written["purpose"].tolist()) == {Purpose.OUTPUT}
    names = {program.tensors[row].name for row in written["tensor"].tolist()}
    assert names == {program.tensors[0].name}


@pytest.mark.parametrize("update", [scatter, slice_update])
def test_a_parameter_that_is_not_donated_is_copied_first(update):
    _, program = updated(update("%r", "%cache"), aliases=())
    assert copied(program) >= ROWS * WIDTH * 2


@pytest.mark.parametrize("update", [scatter, slice_update])
def test_the_rows_come_after_the_copy_that_they_are_written_over(update):
    _, program = updated(update("%r", "%cache"), aliases=())
    simulation = simulate(program, CORE)
    result = max(program.dmas["tensor"].tolist())
    into = program.dmas["tensor"] == result
    whole = into & (program.dmas["bytes"] >= ROWS * WIDTH * 2)
    assert simulation.dma_start_ps[into & ~whole].min() >= simulation.dma_end_ps[whole].max()


def test_the_old_content_that_somebody_reads_is_kept():
    later = f"%t = stablehlo.tanh %cache : {CACHE}"
    plan, program = updated(scatter("%r", "%cache"), later, results="%r, %t", types=f"{CACHE}, {CACHE}")
    assert not plan.in_place
    assert copied(program) == ROWS * WIDTH * 2


def test_readers_whose_values_are_written_come_before():
    lines = [gather("%g", "%cache"), f"%m = stablehlo.tanh %g : {UPDATE}", scatter("%r", "%cache", "%m")]
    _, program = updated(*lines)
    assert copied(program) == 0


def test_the_new_content_may_be_read_by_anybody():
    lines = [scatter("%r", "%cache"), gather("%g", "%r")]
    _, program = updated(*lines, results="%r, %g", types=f"{CACHE}, {UPDATE}")
    assert copied(program) == 0


def test_updates_that_follow_one_another_share_the_memory():
    plan, program = updated(scatter("%a", "%cache"), slice_update("%r", "%a"))
    assert len(plan.in_place) == 2
    assert copied(program) == NEW * WIDTH * 2
    assert len({int(row) for row in program.dmas["tensor"]} & {0}) == 1


def test_a_value_made_here_is_updated_where_it_was_made():
    plan, program = updated(f"%t = stablehlo.tanh %cache : {CACHE}", scatter("%r", "%t"), aliases=())
    assert copied(program) == 0
    stores = program.dmas[program.dmas["destination_memory"] == Memory.HBM]
    assert len(set(stores["tensor"].tolist())) == 1
    assert set(stores["purpose"].tolist()) == {Purpose.OUTPUT}
    assert plan.in_place


def test_an_update_with_part_of_what_it_updates_is_made_over_a_copy():
    part = f"%p = stablehlo.slice %cache [0:{NEW}, 0:{WIDTH}] : ({CACHE}) -> {UPDATE}"
    plan, _ = updated(part, scatter("%r", "%cache", "%p"))
    assert not plan.in_place


def layer(number: int, state: str) -> tuple[list[str], str]:
    """Lines that update cache `number` with what they make of a state, and the next state."""
    new, kept, read, after = (f"%{name}{number}" for name in ("n", "r", "g", "v"))
    lines = [f"{new} = stablehlo.tanh {state} : {UPDATE}", scatter(kept, f"%c{number}", new)]
    lines += [gather(read, kept), f"%e{number} = stablehlo.exponential {read} : {UPDATE}"]
    lines += [f"%d{number} = stablehlo.subtract {new}, %e{number} : {UPDATE}"]
    return [*lines, f"{after} = stablehlo.add {new}, %d{number} : {UPDATE}"], after


def test_each_of_many_equal_layers_updates_its_own_cache():
    layers, state, lines = 4, "%u", []
    for number in range(layers):
        made, state = layer(number, state)
        lines += made
    caches = ", ".join(f"%c{n}: {CACHE}" for n in range(layers))
    types = ", ".join([*[CACHE] * layers, UPDATE])
    text = f"""func.func @main({caches}, %i: {INDEX}, %u: {UPDATE}) -> ({types}) {{
      {" ".join(lines)}
      return {", ".join(f"%r{n}" for n in range(layers))}, {state} : {types}
    }}"""
    known = replace(module(text), aliases=tuple((n, n) for n in range(layers)))
    assert max(len(found.windows) for found in find_repetitions(plan_module(known, CompilerOptions()))) > 2
    program = compile_module(known, CORE)
    check(program, CORE)
    assert copied(program) == 0
    outputs = program.dmas[program.dmas["purpose"] == Purpose.OUTPUT]
    assert set(range(layers)) < set(outputs["tensor"].tolist())


def test_a_copy_of_a_parameter_moves_its_bytes_by_all_engines():
    text = function(f"%a: {CACHE}", CACHE, f"%r = stablehlo.add %a, %a : {CACHE}")
    known = module(text)
    operation = replace(known.operations[0], opcode="copy", operands=known.parameters)
    program = compile_module(replace(known, operations=(operation,)), CORE)
    check(program, CORE)
    assert copied(program) == ROWS * WIDTH * 2
    assert program.dmas["descriptors"].min() >= CORE.dma_engines
