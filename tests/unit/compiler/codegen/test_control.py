from dataclasses import replace

import numpy as np
import pytest

from neuron_tools.compiler.compile import compile_module
from neuron_tools.records.program import Opcode
from neuron_tools.simulator import simulate
from neuron_tools.simulator.check import check
from tests.unit.compiler.modules import CORE, compiled, module, tile_races

STATE = "tensor<128x256xf32>"


def loop(trips: str, *, body: str = "stablehlo.tanh %x", start: int = 0) -> str:
    return f"""
    func.func @main(%a: {STATE}, %n: tensor<i32>) -> {STATE} {{
      %c0 = stablehlo.constant dense<{start}> : tensor<i32>
      %0:2 = stablehlo.while(%i = %c0, %x = %a) : tensor<i32>, {STATE}
       cond {{
        {trips}
        %t = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
       }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %y = {body} : {STATE}
        stablehlo.return %j, %y : tensor<i32>, {STATE}
       }}
      return %0#1 : {STATE}
    }}"""


CONSTANT = "%m = stablehlo.constant dense<7> : tensor<i32>"
DATA = """
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<128x256xf32>, tensor<f32>) -> tensor<f32>
    %m = stablehlo.convert %s : (tensor<f32>) -> tensor<i32>
"""


def activations(program) -> int:
    return int((program.instructions["opcode"] == Opcode.ACTIVATE).sum())


def test_each_trip_names_the_loop_and_its_number():
    program = compiled(loop(CONSTANT))
    names = [operation.name for operation in program.hlo]
    assert [name.rsplit(".", 2)[0] for name in names] == [f"while.0.{trip}" for trip in range(7)]
    assert len(set(names)) == 7
    assert activations(program) == 7
    assert tile_races(program) == 0


def test_a_counter_lives_in_registers():
    program = compiled(loop(CONSTANT))
    assert {operation.opcode for operation in program.hlo} == {"tanh"}


def test_trips_follow_one_another():
    once, often = (simulate(compiled(loop(CONSTANT, start=start)), CORE).duration_ps for start in (6, 0))
    assert often == pytest.approx(7 * once, rel=0.2)


def test_what_a_trip_leaves_as_it_was_is_not_copied():
    unit = f"%k = stablehlo.constant dense<1.0> : {STATE}\n%one ="
    program = compiled(loop(CONSTANT, body="stablehlo.multiply %x, %k").replace("%one =", unit))
    assert not len(program.instructions)


def test_the_front_end_may_say_how_often_a_loop_ran():
    known = module(loop(DATA))
    operations = tuple(
        replace(op, attributes={**op.attributes, "trip_count": 3}) if op.opcode == "while" else op
        for op in known.operations
    )
    program = compile_module(replace(known, operations=operations), CORE)
    check(program, CORE)
    assert {operation.name.split(".")[1] for operation in program.hlo} == {"0"}
    assert {operation.name.split(".")[2] for operation in program.hlo} == {"0", "1", "2"}
    assert not program.warnings


def test_a_condition_on_data_is_computed_each_trip_and_holds_the_next():
    program = compiled(loop(DATA))
    assert "reduce" in {operation.opcode for operation in program.hlo}
    assert "trip count is not known" in program.warnings[0]


def test_memory_does_not_grow_with_the_trips():
    few, many = (len(compiled(loop(CONSTANT, start=start)).tensors) for start in (3, -9))
    assert few == many


def branches(attribute: dict[str, int]):
    text = f"""
    func.func @main(%i: tensor<i32>, %a: {STATE}) -> {STATE} {{
      %0 = "stablehlo.case"(%i) ({{
        %x = stablehlo.tanh %a : {STATE}
        stablehlo.return %x : {STATE}
      }}, {{
        %x = stablehlo.exponential %a : {STATE}
        %y = stablehlo.multiply %x, %a : {STATE}
        stablehlo.return %y : {STATE}
      }}) : (tensor<i32>) -> {STATE}
      return %0 : {STATE}
    }}"""
    known = module(text)
    operations = tuple(replace(op, attributes={**op.attributes, **attribute}) for op in known.operations)
    return compile_module(replace(known, operations=operations), CORE)


def test_the_branch_that_is_named_runs_and_else_the_longest():
    assert "tanh" in branches({"branch": 0}).activations
    longest = branches({})
    assert "exp" in longest.activations
    assert "longest branch" in longest.warnings[0]


ROWS = 6
TABLE = f"tensor<{ROWS}x128x256xf32>"


def rows_written(begin: str, result: str = "%0#1") -> str:
    """A loop that writes a row of a table in each trip; the table begins as `begin`."""
    return f"""
    func.func @main(%a: {STATE}, %t: {TABLE}) -> {TABLE} {{
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %m = stablehlo.constant dense<{ROWS}> : tensor<i32>
      %zeros = stablehlo.constant dense<0.0> : {TABLE}
      %made = stablehlo.tanh %t : {TABLE}
      %0:2 = stablehlo.while(%i = %c0, %x = {begin}) : tensor<i32>, {TABLE}
       cond {{
        %go = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
       }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %row = stablehlo.reshape %a : ({STATE}) -> tensor<1x128x256xf32>
        %y = stablehlo.dynamic_update_slice %x, %row, %i, %c0, %c0
          : ({TABLE}, tensor<1x128x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {TABLE}
        stablehlo.return %j, %y : tensor<i32>, {TABLE}
       }}
      %sum = stablehlo.add %0#1, {begin} : {TABLE}
      return {result} : {TABLE}
    }}"""


@pytest.mark.parametrize(
    ("begin", "result"), [("%zeros", "%0#1"), ("%t", "%0#1"), ("%made", "%0#1"), ("%t", "%sum")]
)
def test_a_table_that_trips_write_rows_of_is_written_where_it_is(begin, result):
    program = compiled(rows_written(begin, result))
    assert tile_races(program) == 0
    row, dmas = 128 * 256 * 4, program.dmas
    updates = [at for at, each in enumerate(program.hlo) if each.opcode == "dynamic_update_slice"]
    written = dmas["bytes"][np.isin(dmas["hlo"], updates)].sum()
    assert written == ROWS * row
    loop = [at for at, each in enumerate(program.hlo) if each.opcode == "copy"]
    assert dmas["bytes"][np.isin(dmas["hlo"], loop)].sum() == ROWS * row  # once, before the first trip
