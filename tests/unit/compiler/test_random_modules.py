"""Whatever small module is compiled: the Program runs, keeps its memory apart and charges every operation."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from neuron_tools.records.program import Memory
from tests.unit.compiler.modules import compiled, function, tensor, tile_races

UNARY = ("tanh", "exponential", "negate", "sqrt", "logistic", "abs", "floor")
BINARY = ("add", "multiply", "subtract", "maximum", "divide")


@st.composite
def modules(draw) -> str:
    """A chain of up to twelve operations on matrices of one shape, some read twice."""
    rows, columns = draw(st.sampled_from([(1, 1), (3, 130), (128, 64), (200, 512), (256, 2048)]))
    dtype = draw(st.sampled_from(["f32", "bf16"]))
    full, row, scalar = tensor((rows, columns), dtype), tensor((rows,), dtype), f"tensor<{dtype}>"
    square = tensor((columns, columns), dtype)
    lines = [f"%zero = stablehlo.constant dense<0.0> : {scalar}"]
    made = ["%a", "%b"]
    for index in range(draw(st.integers(1, 12))):
        operand = draw(st.sampled_from(made[-4:]))
        other = draw(st.sampled_from(made))
        where = f'loc("fw:{index}")'
        kind = draw(st.sampled_from(["unary", "unary", "binary", "binary", "rows", "columns", "dot", "turn"]))
        if kind == "unary":
            lines.append(f"%v{index} = stablehlo.{draw(st.sampled_from(UNARY))} {operand} : {full} {where}")
        elif kind == "binary":
            name = draw(st.sampled_from(BINARY))
            lines.append(f"%v{index} = stablehlo.{name} {operand}, {other} : {full} {where}")
        elif kind in ("rows", "columns"):
            axis = 1 if kind == "rows" else 0
            reduced = row if kind == "rows" else tensor((columns,), dtype)
            lines += [
                f"%s{index} = stablehlo.reduce({operand} init: %zero) applies stablehlo.add across "
                f"dimensions = [{axis}] : ({full}, {scalar}) -> {reduced} {where}",
                f"%v{index} = stablehlo.broadcast_in_dim %s{index}, dims = [{1 - axis}] "
                f": ({reduced}) -> {full} {where}",
            ]
        elif kind == "dot":
            lines.append(
                f"%v{index} = stablehlo.dot_general {operand}, %w, contracting_dims = [1] x [0] "
                f": ({full}, {square}) -> {full} {where}"
            )
        else:
            turned = tensor((columns, rows), dtype)
            lines += [
                f"%t{index} = stablehlo.transpose {operand}, dims = [1, 0] : ({full}) -> {turned} {where}",
                f"%u{index} = stablehlo.tanh %t{index} : {turned} {where}",
                f"%v{index} = stablehlo.transpose %u{index}, dims = [1, 0] : ({turned}) -> {full} {where}",
            ]
        made.append(f"%v{index}")
    lines.append(f"%r = stablehlo.add {made[-1]}, %a : {full}")
    return function(f"%a: {full}, %b: {full}, %w: {square}", full, *lines)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_any_module_compiles_to_a_program_that_runs(text):
    program = compiled(text, names=tuple(f"operation{index}" for index in range(12)))
    assert tile_races(program) == 0
    assert np.all(program.instructions["hlo"] >= 0)
    for operation in program.hlo:
        assert operation.framework
        assert sum(operation.shares) == pytest.approx(1.0)
    stored = program.dmas["destination_memory"] == Memory.HBM
    outputs = {row for row, tensor_ in enumerate(program.tensors) if tensor_.kind.name == "OUTPUT"}
    assert outputs <= set(program.dmas["tensor"][stored].tolist())
    assert not program.warnings
