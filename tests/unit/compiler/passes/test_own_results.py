"""Results that passes merged with a parameter or another result: each has memory of its own."""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.passes.pipeline import optimise
from tests.unit.compiler.modules import module as parsed, opcode_names, tensor

SHAPE = tensor((4, 8))
ONE = f"%one = stablehlo.constant dense<1.0> : {SHAPE}"
TIMES_ONE = f"""func.func @main(%a: {SHAPE}) -> {SHAPE} {{
    {ONE}
    %r = stablehlo.multiply %a, %one : {SHAPE}
    return %r : {SHAPE} }}"""


def test_a_product_with_one_is_a_copy():
    module = optimise(parsed(TIMES_ONE))
    (copy,) = module.operations
    assert (copy.opcode, copy.operands, copy.results) == ("copy", module.parameters, module.results)


def test_so_it_is_behind_a_barrier():
    module = optimise(
        parsed(f"""func.func @main(%a: {SHAPE}) -> {SHAPE} {{
    {ONE}
    %p = stablehlo.multiply %a, %one : {SHAPE}
    %r = stablehlo.optimization_barrier %p : {SHAPE}
    return %r : {SHAPE} }}""")
    )
    assert opcode_names(module) == ["copy"]


def test_what_is_computed_twice_for_two_results_is_computed_and_copied():
    module = optimise(
        parsed(f"""func.func @main(%a: {SHAPE}, %b: {SHAPE}) -> ({SHAPE}, {SHAPE}) {{
    %r = stablehlo.add %a, %b : {SHAPE}
    %s = stablehlo.add %a, %b : {SHAPE}
    return %r, %s : {SHAPE}, {SHAPE} }}""")
    )
    sum_, copy = module.operations
    assert (sum_.opcode, copy.opcode, copy.operands) == ("add", "copy", sum_.results)
    assert module.results == (*sum_.results, *copy.results)


def test_what_is_written_where_it_was_needs_none():
    module = optimise(replace(parsed(TIMES_ONE), aliases=((0, 0),)))
    assert not module.operations
    assert module.results == module.parameters


def test_a_parameter_that_is_a_result_stays_one():
    module = optimise(parsed(f"func.func @main(%a: {SHAPE}) -> {SHAPE} {{ return %a : {SHAPE} }}"))
    assert not module.operations
