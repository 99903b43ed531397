"""Reductions over an axis that is not the innermost, of which one waits for another, become rows."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.passes import pipeline
from neuron_tools.compiler.passes.turn_reductions import turn_reductions
from neuron_tools.simulator import simulate
from neuron_tools.simulator.check import check
from tests.unit.compiler.modules import CORE, function, module, reduction, tensor


def softmax(shape, axis: int, dtype: str = "bf16", *more: str, returns: str = "") -> str:
    kept = [extent for place, extent in enumerate(shape) if place != axis]
    dims = [place for place in range(len(shape)) if place != axis]
    full, row, scalar, given = tensor(shape), tensor(kept), "tensor<f32>", tensor(shape, dtype)
    last = "%r" if not more else "%q"
    return function(
        f"%a: {given}",
        returns or given,
        f"%low = stablehlo.constant dense<0xFF800000> : {scalar}",
        f"%zero = stablehlo.constant dense<0.0> : {scalar}",
        f"%x = stablehlo.convert %a : ({given}) -> {full}",
        f"%m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [{axis}] "
        f": ({full}, {scalar}) -> {row}",
        f"%mb = stablehlo.broadcast_in_dim %m, dims = {dims} : ({row}) -> {full}",
        f"%d = stablehlo.subtract %x, %mb : {full}",
        f"%e = stablehlo.exponential %d : {full}",
        f"%s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [{axis}] "
        f": ({full}, {scalar}) -> {row}",
        f"%sb = stablehlo.broadcast_in_dim %s, dims = {dims} : ({row}) -> {full}",
        f"%p = stablehlo.divide %e, %sb : {full}",
        f"{last} = stablehlo.convert %p : ({full}) -> {given}",
        *more,
    )


def duration_ps(text: str) -> int:
    program = compile_module(module(text), CORE)
    check(program, CORE)
    return simulate(program, CORE).duration_ps


SHAPES = [
    ((1024, 2048), 0),
    ((16, 256, 512), 1),
    ((64, 64, 1024), 1),
    ((256, 8, 512), 0),
    ((8, 128, 16, 32), 1),
]


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_reductions_run_along_the_innermost_axis(shape, axis):
    turned = turn_reductions(module(softmax(shape, axis)))
    reductions = [operation for operation in turned.operations if operation.opcode == "reduce"]
    for operation in reductions:
        operand = turned.values[operation.operands[0]].type.shape
        assert operation.attributes["dimensions"] == (len(shape) - 1,)
        assert operand[-1] == shape[axis]
        assert operand[:-1] == turned.values[operation.results[0]].type.shape
    assert len(reductions) == 2
    assert turned.values[turned.results[0]].type.shape == shape


def assert_types_fit(made) -> None:
    """Operands are made before they are read, and have the shapes that their readers ask for."""
    known = set(made.parameters)
    for operation in made.operations:
        assert known.issuperset(operation.operands)
        known.update(operation.results)
        shapes = [made.values[value].type.shape for value in (*operation.operands, *operation.results)]
        if operation.opcode in ("add", "subtract", "divide", "exponential"):
            assert len(set(shapes)) == 1
        if operation.opcode == "reduce":
            (gone,) = operation.attributes["dimensions"]
            assert (*shapes[0][:gone], *shapes[0][gone + 1 :]) == shapes[-1]
        if operation.opcode == "broadcast_in_dim":
            dims = operation.attributes["broadcast_dimensions"]
            assert tuple(shapes[1][dim] for dim in dims) == shapes[0]
            assert list(dims) == sorted(dims)
        if operation.opcode == "transpose":
            order = operation.attributes["permutation"]
            assert tuple(shapes[0][place] for place in order) == shapes[1]
    assert known.issuperset(made.results)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_every_operation_has_operands_that_were_made_and_types_that_fit(shape, axis):
    assert_types_fit(turn_reductions(module(softmax(shape, axis))))


def softmax_lines(shape, axis: int, source: str, tag: str) -> list[str]:
    """A softmax of a value in fp32 as `%p` and the tag."""
    kept = [extent for place, extent in enumerate(shape) if place != axis]
    dims = [place for place in range(len(shape)) if place != axis]
    full, row = tensor(shape), tensor(kept)

    def reduced(name: str, of: str, initial: str, by: str) -> str:
        return (
            f"%{name}{tag} = stablehlo.reduce({of} init: {initial}) applies stablehlo.{by} "
            f"across dimensions = [{axis}] : ({full}, tensor<f32>) -> {row}"
        )

    def spread(name: str, of: str) -> str:
        return f"%{name}{tag} = stablehlo.broadcast_in_dim %{of}{tag}, dims = {dims} : ({row}) -> {full}"

    return [
        reduced("m", source, "%low", "maximum"),
        spread("mb", "m"),
        f"%d{tag} = stablehlo.subtract {source}, %mb{tag} : {full}",
        f"%e{tag} = stablehlo.exponential %d{tag} : {full}",
        reduced("s", f"%e{tag}", "%zero", "add"),
        spread("sb", "s"),
        f"%p{tag} = stablehlo.divide %e{tag}, %sb{tag} : {full}",
    ]


@pytest.mark.parametrize("second_reads", ["%a", "%p0"])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_values_are_turned_for_each_axis_that_is_reduced(axes, second_reads):
    shape = (128, 96, 80)
    full = tensor(shape)
    made = module(
        function(
            f"%a: {full}",
            full,
            "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
            "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
            *softmax_lines(shape, axes[0], "%a", "0"),
            *softmax_lines(shape, axes[1], second_reads, "1"),
            f"%r = stablehlo.add %p0, %p1 : {full}",
        )
    )
    turned = turn_reductions(made)
    assert_types_fit(turned)
    assert sum(operation.opcode == "transpose" for operation in turned.operations) == 4


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(("shape", "axis"), [((64, 64, 1024), 1), ((1024, 2048), 0)])
def test_it_takes_less_time(monkeypatch, shape, axis, dtype):
    text = softmax(shape, axis, dtype)
    after = duration_ps(text)
    without = tuple(each for each in pipeline.PASSES if each is not turn_reductions)
    monkeypatch.setattr(pipeline, "PASSES", without)
    assert after < duration_ps(text)


@pytest.mark.parametrize(
    "text",
    [
        softmax((1024, 2048), 1),
        softmax((64, 16, 1024), 1),
        softmax((64, 1024, 16), 1),
        reduction("add", (1024, 2048), (0,), "bf16"),
    ],
    ids=["innermost already", "few rows", "short stretches", "one alone"],
)
def test_others_stay_as_they_are(text):
    known = module(text)
    assert turn_reductions(known) is known


def test_others_read_the_results_in_their_own_order():
    shape = (256, 512)
    given = tensor(shape, "bf16")
    text = softmax(shape, 0, "bf16", f"%r = stablehlo.add %q, %a : {given}")
    turned = turn_reductions(module(text))
    (addition,) = (op for op in turned.operations if op.opcode == "add" and len(op.operands) == 2)
    assert {turned.values[value].type.shape for value in addition.operands} == {shape}
    assert np.prod(turned.values[addition.results[0]].type.shape) == np.prod(shape)
    assert duration_ps(text) > 0
