"""PyTorch's own operator database agrees with the CPU on `neuron`: values, strides and gradients."""

import pytest
from torch.testing._internal.common_methods_invocations import op_db

from tests.integration.device.operator_comparison import EXPECTED_FAILURES, compare_all, summarise

EVERY = 12


def unexpected(outcomes):
    return [
        f"{outcome.operator} {outcome.dtype}: {outcome.difference}"
        for outcome in outcomes
        if not outcome.passed and outcome.operator not in EXPECTED_FAILURES
    ]


def test_a_sample_of_the_operators_agrees_with_the_cpu():
    outcomes = list(compare_all(op_db[::EVERY]))
    assert len(outcomes) > len(op_db) / EVERY
    assert any(outcome.checked_gradients for outcome in outcomes)
    assert unexpected(outcomes) == []


@pytest.mark.slow
def test_all_operators_but_the_documented_ones_agree_with_the_cpu():
    outcomes = list(compare_all(op_db))
    passed, total = summarise(outcomes)
    assert unexpected(outcomes) == []
    assert passed / total >= 0.99
