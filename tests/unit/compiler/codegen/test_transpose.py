"""Transposes with unit dimensions cost what they cost without them."""

from __future__ import annotations

import pytest

from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, tensor


def _transposed_ps(shape: tuple[int, ...], permutation: tuple[int, ...], dtype: str) -> int:
    source, result = tensor(shape, dtype), tensor([shape[axis] for axis in permutation], dtype)
    line = f"%r = stablehlo.transpose %a, dims = {list(permutation)} : ({source}) -> {result}"
    return simulate(compiled(function(f"%a: {source}", result, line)), CORE).duration_ps


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("shape", "permutation"),
    [
        ((2, 384, 6, 64, 1), (0, 2, 3, 1, 4)),
        ((2, 384, 6, 1, 64), (0, 2, 4, 1, 3)),
        ((2, 1, 384, 6, 64), (0, 3, 4, 2, 1)),
    ],
)
def test_unit_dimensions_cost_nothing(shape, permutation, dtype):
    assert _transposed_ps(shape, permutation, dtype) == _transposed_ps((2, 384, 6, 64), (0, 2, 3, 1), dtype)
