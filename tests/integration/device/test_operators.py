"""PyTorch's own operator database agrees with the CPU on `neuron`: values, strides and gradients."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.device.operator_comparison import EXPECTED_FAILURES, compare_all, database, summarise

EVERY = 12


def compared(operators):
    """Outcomes; in a thread, as PyTorch's database looks at the whole stack for each sample."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: list(compare_all(operators))).result()


def unexpected(outcomes):
    return [
        f"{outcome.operator} {outcome.dtype}: {outcome.difference}"
        for outcome in outcomes
        if not outcome.passed and outcome.operator not in EXPECTED_FAILURES
    ]


def test_a_sample_of_the_operators_agrees_with_the_cpu():
    operators = database()
    outcomes = compared(operators[::EVERY])
    assert len(outcomes) > len(operators) / EVERY
    assert any(outcome.checked_gradients for outcome in outcomes)
    assert unexpected(outcomes) == []


@pytest.mark.slow
def test_all_operators_but_the_documented_ones_agree_with_the_cpu():
    outcomes = compared(database())
    passed, total = summarise(outcomes)
    assert unexpected(outcomes) == []
    assert passed / total >= 0.99
