"""Biases that start the sums of a product."""

from __future__ import annotations

import pytest

from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.records.program import Memory, Opcode
from tests.unit.compiler.modules import CORE, function, module, tensor, tile_races

DEPTH, COLUMNS = 256, 768


def program(rows: int, dtype: str, *, kind: str = "weight", inline: bool = True):
    left, right = tensor((rows, DEPTH), "bf16"), tensor((DEPTH, COLUMNS), "bf16")
    bias, result = tensor((COLUMNS,), dtype), tensor((rows, COLUMNS), dtype)
    text = function(
        f"%a: {left}, %b: {right}, %c: {bias}", result,
        f"%p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({left}, {right}) -> {result}",
        f"%w = stablehlo.broadcast_in_dim %c, dims = [1] : ({bias}) -> {result}",
        f"%r = stablehlo.add %p, %w : {result}",
    )  # fmt: skip
    kinds = ["input", "weight", kind]
    return compile_module(module(text, parameter_kinds=kinds), CORE, CompilerOptions(inline_weights=inline))


def bias_bytes(compiled) -> int:
    loads = compiled.dmas[compiled.dmas["destination_memory"] == Memory.SBUF]
    row = next(i for i, item in enumerate(compiled.tensors) if item.shape == (COLUMNS,))
    return int(loads["bytes"][loads["tensor"] == row].sum())


def additions(compiled) -> int:
    return int((compiled.instructions["opcode"] == Opcode.TENSOR_TENSOR).sum())


def test_a_bias_is_loaded_once_and_no_engine_adds_it():
    compiled = program(128, "bf16")
    assert bias_bytes(compiled) == COLUMNS * 2
    assert additions(compiled) == 0
    products = compiled.instructions[compiled.instructions["opcode"] == Opcode.MATMUL]
    assert products["elements"][products["partitions"] == 1].sum() == COLUMNS


def test_a_stored_float32_bias_is_three_bfloat16_rows():
    compiled = program(2 * CORE.tensor_columns, "f32")
    assert bias_bytes(compiled) == 3 * COLUMNS * 2
    assert tile_races(compiled) == 0


@pytest.mark.parametrize("case", [{"kind": "input"}, {"inline": False}], ids=["input", "weights apart"])
def test_a_float32_bias_that_nobody_can_prepare_goes_to_every_partition(case):
    compiled = program(128, "f32", **case)
    assert bias_bytes(compiled) == CORE.sbuf_partitions * COLUMNS * 4
    assert additions(compiled) > 0


def test_with_many_rows_other_engines_add_it():
    compiled = program(64 * CORE.tensor_columns, "bf16")
    assert bias_bytes(compiled) == CORE.sbuf_partitions * COLUMNS * 2
    assert additions(compiled) > 0
