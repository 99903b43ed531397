"""Results of which passes leave a parameter: each has memory of its own."""

from __future__ import annotations

from dataclasses import replace

from neuron_tools.compiler.passes.pipeline import optimise
from tests.unit.compiler.modules import module as parsed, tensor

SHAPE = tensor((4, 8))
TIMES_ONE = f"""func.func @main(%a: {SHAPE}) -> {SHAPE} {{
    %one = stablehlo.constant dense<1.0> : {SHAPE}
    %r = stablehlo.multiply %a, %one : {SHAPE}
    return %r : {SHAPE} }}"""


def test_a_product_with_one_is_a_copy():
    module = optimise(parsed(TIMES_ONE))
    (copy,) = module.operations
    assert (copy.opcode, copy.operands, copy.results) == ("copy", module.parameters, module.results)


def test_what_is_written_where_it_was_needs_none():
    module = optimise(replace(parsed(TIMES_ONE), aliases=((0, 0),)))
    assert not module.operations
    assert module.results == module.parameters


def test_a_parameter_that_is_a_result_stays_one():
    module = optimise(parsed(f"func.func @main(%a: {SHAPE}) -> {SHAPE} {{ return %a : {SHAPE} }}"))
    assert not module.operations
