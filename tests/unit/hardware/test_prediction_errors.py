"""Ranges hold as often as they say, on rows that were not used to make them."""

from __future__ import annotations

import math

import pytest

from neuron_tools.hardware.prediction_errors import (
    SHARE,
    Kind,
    PredictionError,
    covered,
    expected_factors,
    half_width,
    of_kind,
)


def errors(*ratios: float) -> list[PredictionError]:
    return [PredictionError(Kind.MODEL, f"model {n}", "", ratio) for n, ratio in enumerate(ratios)]


@pytest.mark.parametrize("kind", Kind)
def test_four_of_five_rows_lie_in_the_range_of_the_others(kind: Kind) -> None:
    assert covered(of_kind(kind), whole_groups=False) >= SHARE


def test_four_of_five_models_lie_in_the_range_of_other_models() -> None:
    assert covered(of_kind(Kind.MODEL), whole_groups=True) >= SHARE


def test_too_fast_and_too_slow_count_alike() -> None:
    assert half_width(errors(2, 0.5, 1, 1)) == pytest.approx(math.log(2))


def test_few_rows_tell_nothing() -> None:
    assert half_width(errors(1.1, 1.2, 1.3)) == math.inf


def test_both_reasons_make_up_the_range() -> None:
    found = expected_factors()
    parts = (math.log1p(found.compiler), math.log1p(found.hardware))
    assert math.hypot(*parts) == pytest.approx(math.log(found.high))
    assert found.low == pytest.approx(1 / found.high)
