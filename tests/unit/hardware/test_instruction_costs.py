"""Cost rules are data with sources; generations without their own take the nearest measured one's."""

import pytest

from neuron_tools.hardware.errors import UnknownTargetError
from neuron_tools.hardware.instruction_costs import OTHER, cost_rules, performance_modes


@pytest.mark.parametrize("generation", [1, 2, 3, 4])
def test_every_engine_has_a_rule_for_any_opcode_and_every_rule_a_source(generation):
    rules = cost_rules(generation)
    for engine in ("TENSOR", "VECTOR", "SCALAR", "GPSIMD", "SYNC"):
        assert (engine, OTHER) in rules
    assert all(rule.source for rule in rules.values())


def test_generations_without_published_costs_are_estimates():
    estimates = {key: rule.is_estimate for key, rule in cost_rules(4).items()}
    assert [key for key, is_estimate in estimates.items() if not is_estimate] == [("TENSOR", "MATMUL")]
    assert all(rule.is_estimate for rule in cost_rules(1).values())
    assert not cost_rules(3)["VECTOR", "TENSOR_REDUCE"].is_estimate


def test_performance_modes_are_faster_than_the_plain_rate():
    assert all(speed > 1 for speed in performance_modes().values())


def test_an_unknown_generation_is_refused():
    with pytest.raises(UnknownTargetError):
        cost_rules(9)
