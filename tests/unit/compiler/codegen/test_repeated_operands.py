"""Operands of which memory holds one element: loaded once, spread on chip."""

from __future__ import annotations

import pytest

from neuron_tools.records.program import Memory
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, moved, multiply_accumulates, tensor

SIZE = 512
SQUARE, ONE = tensor((SIZE, SIZE), "bf16"), tensor((1, 1), "bf16")


def product(repeated: str) -> str:
    arguments = ", ".join(f"%{name}: {ONE if name == repeated else SQUARE}" for name in "ab")
    lines = [f"%x = stablehlo.broadcast_in_dim %{repeated}, dims = [0, 1] : ({ONE}) -> {SQUARE}"]
    left, right = ("%x" if name == repeated else f"%{name}" for name in "ab")
    lines += [
        f"%r = stablehlo.dot_general {left}, {right}, contracting_dims = [1] x [0] "
        f": ({SQUARE}, {SQUARE}) -> {SQUARE}"
    ]
    return function(arguments, SQUARE, *lines)


@pytest.mark.parametrize("repeated", ["a", "b"])
def test_a_repeated_operand_of_a_product_is_loaded_once(repeated):
    program = compiled(product(repeated))
    spread = CORE.sbuf_partitions * 2
    assert moved(program, Memory.HBM, Memory.SBUF) == SIZE * SIZE * 2 + spread
    assert multiply_accumulates(program) == SIZE**3


@pytest.mark.parametrize("repeated", ["a", "b"])
def test_it_costs_no_more_than_one_that_is_all_there(repeated):
    whole = product(repeated).replace(ONE, SQUARE)
    times = [simulate(compiled(text), CORE).duration_ps for text in (product(repeated), whole)]
    assert times[0] <= 1.05 * times[1]


def test_a_repeated_image_is_spread_too():
    image, one = tensor((2, 64, 16, 16), "bf16"), tensor((1, 1, 1, 1), "bf16")
    kernel = tensor((64, 64, 3, 3), "bf16")
    text = function(
        f"%a: {one}, %k: {kernel}", image,
        f"%x = stablehlo.broadcast_in_dim %a, dims = [0, 1, 2, 3] : ({one}) -> {image}",
        f"%r = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        f": ({image}, {kernel}) -> {image}",
    )  # fmt: skip
    program = compiled(text)
    into = program.dmas[program.dmas["destination_memory"] == Memory.SBUF]
    assert into["bytes"][into["descriptor_bytes"] == 2].sum() == CORE.sbuf_partitions * 2
