"""Operations that only move data inside HBM."""

from __future__ import annotations

import pytest

from neuron_tools.compiler.compile import compile_module
from neuron_tools.records.program import Memory
from tests.unit.compiler.modules import CORE, function, module, tensor


def moved_bytes(operand: str, result: str, line: str) -> int:
    dmas = compile_module(module(function(f"%a: {operand}", result, line)), CORE).dmas
    return int(dmas["bytes"][dmas["source_memory"] == Memory.HBM].sum())


@pytest.mark.parametrize("columns", [8, 1000])
def test_a_slice_moves_what_is_taken(columns):
    operand, result = tensor((16, 32000)), tensor((16, columns))
    line = f"%r = stablehlo.slice %a [0:16, 5:{5 + columns}] : ({operand}) -> {result}"
    assert moved_bytes(operand, result, line) == 16 * columns * 4


def test_a_pad_that_cuts_off_moves_what_is_left():
    operand, result = tensor((16, 32000)), tensor((16, 1000))
    line = (
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%r = stablehlo.pad %a, %z, low = [0, -31000], high = [0, 0], interior = [0, 0] "
        f": ({operand}, tensor<f32>) -> {result}"
    )
    assert moved_bytes(operand, result, line) == 16 * 1000 * 4
