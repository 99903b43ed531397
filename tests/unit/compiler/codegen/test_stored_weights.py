"""Weights inside the artifact lie as the product that reads them wants them."""

from __future__ import annotations

import pytest

from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.records.program import Opcode, Program, TensorKind
from tests.unit.compiler.modules import CORE, function, module, tensor

ROWS, DEPTH, COLUMNS = 128, 256, 768


def linear(*, inline: bool, read_twice: bool = False) -> Program:
    """x @ w.T, and perhaps w once more as a result's operand."""
    left, right = tensor((ROWS, DEPTH), "bf16"), tensor((COLUMNS, DEPTH), "bf16")
    result = tensor((ROWS, COLUMNS), "bf16")
    again = [
        f"%s = stablehlo.slice %b [0:{ROWS}, 0:{DEPTH}] : ({right}) -> {left}",
        f"%l = stablehlo.add %a, %s : {left}",
    ]
    lines = again if read_twice else [f"%l = stablehlo.add %a, %a : {left}"]
    text = function(
        f"%a: {left}, %b: {right}", result, *lines,
        f"%r = stablehlo.dot_general %l, %b, contracting_dims = [1] x [1] : ({left}, {right}) -> {result}",
    )  # fmt: skip
    made = module(text, parameter_kinds=["input", "weight"])
    return compile_module(made, CORE, CompilerOptions(inline_weights=inline))


def turned_loads(program: Program) -> int:
    """Loads of the weight that turn it."""
    weight = next(row for row, item in enumerate(program.tensors) if item.kind is TensorKind.WEIGHT)
    return int(program.dmas["transpose"][program.dmas["tensor"] == weight].sum())


def test_a_weight_of_the_artifact_is_loaded_as_the_product_reads_it():
    program = linear(inline=True)
    assert turned_loads(program) == 0
    assert not program.dmas["strided"].any()


@pytest.mark.parametrize("case", [{"inline": False}, {"inline": True, "read_twice": True}],
                         ids=["weights apart", "read twice"])  # fmt: skip
def test_other_weights_are_turned_on_the_way(case):
    assert turned_loads(linear(**case)) > 0


def convolution(*, inline: bool) -> Program:
    """64 channels to 64, 3 x 3, with the kernel as PyTorch has it."""
    image, kernel = tensor((1, 64, 28, 28), "bf16"), tensor((64, 64, 3, 3), "bf16")
    result = tensor((1, 64, 28, 28), "bf16")
    text = function(
        f"%a: {image}, %b: {kernel}", result,
        "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        f": ({image}, {kernel}) -> {result}",
    )  # fmt: skip
    made = module(text, parameter_kinds=["input", "weight"])
    return compile_module(made, CORE, CompilerOptions(inline_weights=inline))


def test_kernels_of_convolutions_too():
    assert turned_loads(convolution(inline=True)) == 0
    assert turned_loads(convolution(inline=False)) > 0
    products = [
        int((convolution(inline=inline).instructions["opcode"] == Opcode.MATMUL).sum())
        for inline in (True, False)
    ]
    assert products[0] == products[1]
