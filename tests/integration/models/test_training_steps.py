"""One training step of every common model on the device: values, lowering and attribution."""

from __future__ import annotations

import pytest

from benchmarks.zoo import CASES
from benchmarks.zoo.coverage import measure

FAST = ("gpt2", "gnn")
TOLERANCE = 1e-3  # float32; attention is summed in another order than the CPU's kernel does


def modes(names, *marks):
    return [
        pytest.param(case, compiled, marks=marks, id=f"{case.name}-{'compiled' if compiled else 'eager'}")
        for case in CASES
        for compiled in (False, True)
        if case.name in names
    ]


SLOW = [case.name for case in CASES if case.name not in FAST]


@pytest.mark.parametrize(("case", "compiled"), [*modes(FAST), *modes(SLOW, pytest.mark.slow)])
def test_a_training_step_is_right_native_and_attributed(case, compiled):
    coverage = measure(case, compiled=compiled)
    assert coverage.difference <= TOLERANCE
    assert coverage.refused == 0
    assert coverage.native_share >= 0.99, coverage.custom_calls
    assert coverage.line_share >= 0.98
    assert coverage.module_share >= 0.98
    assert coverage.line_sum_error < 1e-9
    assert coverage.instructions > coverage.operations
