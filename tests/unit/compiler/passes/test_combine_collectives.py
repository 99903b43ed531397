"""Collectives that become one: which may, and what stands after them."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.passes import combine_collectives as module_of_pass
from neuron_tools.compiler.passes.combine_collectives import combine_collectives
from tests.unit.compiler.modules import module as parsed, tensor

SHARD = tensor((4, 8))
OTHERS = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
ALL = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"


def reduced(name: str, of: str, groups: str = ALL, body: str = "add", shape: str = SHARD) -> str:
    element = f"tensor<{shape[shape.rindex('x') + 1 : -1]}>"
    region = f"""({{ ^bb0(%x: {element}, %y: {element}):
        %o = stablehlo.{body} %x, %y : {element}
        stablehlo.return %o : {element} }})"""
    return f'{name} = "stablehlo.all_reduce"({of}) <{{{groups}}}> {region} : ({shape}) -> {shape}'


def combined(*body: str, results: str = "%r, %s", parameters: str = f"%a: {SHARD}, %b: {SHARD}"):
    types = ", ".join([SHARD] * (results.count(",") + 1))
    lines = "\n".join(body)
    module = parsed(f"func.func @main({parameters}) -> ({types}) {{\n{lines}\nreturn {results} : {types}\n}}")
    made = combine_collectives(module)
    done = set(made.parameters)
    for operation in made.operations:
        assert done.issuperset(operands_of(operation))
        done.update(operation.results)
    assert made.results == module.results
    return made


def operand_counts(module) -> list[int]:
    return [len(each.operands) for each in module.operations if each.opcode == "all_reduce"]


def test_independent_ones_become_one_and_what_uses_the_first_follows():
    module = combined(
        reduced("%m", "%a"), f"%r = stablehlo.tanh %m : {SHARD}",
        f"%n = stablehlo.negate %b : {SHARD}", reduced("%s", "%n"),
    )  # fmt: skip
    assert [each.opcode for each in module.operations] == ["negate", "all_reduce", "tanh"]
    assert operand_counts(module) == [2]


@pytest.mark.parametrize(("handles", "counts"), [((1, 2), [2]), ((0, 0), [2]), ((1, 0), [1, 1])])
def test_that_there_is_a_channel_says_what_groups_are_of_and_its_number_nothing(handles, counts):
    groups = [
        f"{ALL}, channel_handle = #stablehlo.channel_handle<handle = {each}, type = 1>" for each in handles
    ]
    module = combined(reduced("%r", "%a", groups[0]), reduced("%s", "%b", groups[1]))
    assert operand_counts(module) == counts


def test_one_that_needs_another_stays_apart():
    module = combined(reduced("%r", "%a"), f"%n = stablehlo.negate %r : {SHARD}", reduced("%s", "%n"))
    assert operand_counts(module) == [1, 1]


def test_what_became_one_makes_no_circle():
    """The second pair would wait for each other over the first pair."""
    module = combined(
        reduced("%p", "%a"), reduced("%q", "%p", OTHERS), reduced("%t", "%b", OTHERS), reduced("%r", "%t"),
        f"%s = stablehlo.add %q, %r : {SHARD}",
    )  # fmt: skip
    assert operand_counts(module) == [1, 2, 1]


@pytest.mark.parametrize("other", [{"groups": OTHERS}, {"body": "maximum"}])
def test_other_ranks_or_another_sum_stay_apart(other):
    assert operand_counts(combined(reduced("%r", "%a"), reduced("%s", "%b", **other))) == [1, 1]


def test_other_groups_of_many_ranks_stay_apart():
    """As along the two axes of a mesh of 16 times 16."""
    rows = np.arange(256).reshape(16, 16)
    along, across = (
        f"replica_groups = dense<{ranks.tolist()}> : tensor<16x16xi64>" for ranks in (rows, rows.T)
    )
    assert operand_counts(combined(reduced("%r", "%a", along), reduced("%s", "%b", across))) == [1, 1]


def test_other_element_types_stay_apart():
    narrow = tensor((4, 8), "bf16")
    module = combined(
        reduced("%r", "%a"), f"%n = stablehlo.convert %b : ({SHARD}) -> {narrow}",
        reduced("%m", "%n", shape=narrow), f"%s = stablehlo.convert %m : ({narrow}) -> {SHARD}",
    )  # fmt: skip
    assert operand_counts(module) == [1, 1]


def test_the_order_of_operands_of_several_element_types_does_not_matter():
    """Ranks that told it apart would combine differently, and wait for each other."""
    narrow = tensor((4, 8), "bf16")
    of = {"f": SHARD, "b": narrow}
    gathered = [
        f'%{one}{other}:2 = "stablehlo.all_gather"(%{one}, %{other}) <{{{ALL}, all_gather_dim = 0 : i64}}>'
        f" : ({of[one]}, {of[other]}) -> ({wide[one]}, {wide[other]})"
        for wide in [{"f": tensor((16, 8)), "b": tensor((16, 8), "bf16")}]
        for one, other in ("fb", "bf")
    ]
    returned = f"return %fb#0, %bf#0 : {tensor((16, 8))}, {tensor((16, 8), 'bf16')}"
    module = parsed(
        f"func.func @main(%f: {SHARD}, %b: {narrow}) -> ({returned.partition(' : ')[2]}) {{\n"
        + "\n".join([*gathered, returned])
        + "\n}"
    )
    assert [len(each.operands) for each in combine_collectives(module).operations] == [4]


def test_large_ones_stay_apart(monkeypatch):
    monkeypatch.setattr(module_of_pass, "MOST_BYTES", 2 * 4 * 8 * 4)
    parameters = f"%a: {SHARD}, %b: {SHARD}, %c: {SHARD}"
    module = combined(
        reduced("%r", "%a"),
        reduced("%s", "%b"),
        reduced("%t", "%c"),
        results="%r, %s, %t",
        parameters=parameters,
    )
    assert operand_counts(module) == [2, 1]
