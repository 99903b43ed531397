# mypy: disable-error-code="no-any-return, no-untyped-call"
"""The recurrence of `tensor_tensor_scan`: compiled for the operators that kernels use, a loop otherwise."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.operators import Operator

_CODES = {"add": 0, "subtract": 1, "multiply": 2, "maximum": 3, "minimum": 4}


def scan(
    data0: Array, data1: Array, initial: Array, op0: Operator, op1: Operator, reverse0: bool, reverse1: bool
) -> Array:
    """result[:, i] = (data0[:, i] op0 result[:, i - 1]) op1 data1[:, i], fp32 of shape (P, F)."""
    first, second = np.ascontiguousarray(data0), np.ascontiguousarray(data1)
    if op0.name in _CODES and op1.name in _CODES:
        return _compiled()(
            first, second, initial, _CODES[op0.name], _CODES[op1.name], bool(reverse0), bool(reverse1)
        )
    result = np.empty_like(first)
    state = initial
    for position in range(first.shape[1]):
        left, right = first[:, position], second[:, position]
        middle = op0.function(state, left) if reverse0 else op0.function(left, state)
        state = op1.function(right, middle) if reverse1 else op1.function(middle, right)
        result[:, position] = state
    return result


@lru_cache(maxsize=1)
def _compiled() -> Any:
    from neuron_tools.compiled import compiled

    @compiled
    def combine(code, left, right):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # compiled for each type
        if code == 0:
            return left + right
        if code == 1:
            return left - right
        if code == 2:
            return left * right
        if code == 3:
            return max(left, right)
        return min(left, right)

    @compiled
    def recur(data0, data1, initial, op0, op1, reverse0, reverse1):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # compiled for each type
        result = np.empty_like(data0)
        for row in range(data0.shape[0]):
            state = initial[row]
            for position in range(data0.shape[1]):
                left = data0[row, position]
                right = data1[row, position]
                middle = combine(op0, state, left) if reverse0 else combine(op0, left, state)
                state = combine(op1, right, middle) if reverse1 else combine(op1, middle, right)
                result[row, position] = state
        return result

    return recur
