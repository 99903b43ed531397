from __future__ import annotations

import numpy as np
import pytest

from neuron_profile.fix.values import RunValues, compare_values


def values(printed="", **arrays):
    return RunValues({name: np.array(value, float) for name, value in arrays.items()}, printed)


def test_what_both_runs_have_is_compared():
    found = compare_values(values(a=[1, 2], b=3), values(a=[1, 2.002], c=9), 1e-2)
    assert (found.compared, found.where) == (2, "a")
    assert found.difference == pytest.approx(0.001)
    assert found.equal


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (values(a=1), values(a=2)),
        (values(a=[1, 2]), values(a=[1])),
        (values(a=1), values(a=np.nan)),
        (values("loss 1.5"), values("loss 2.5")),
        (values("loss 1.5"), values("")),
        (values(), values()),
    ],
)
def test_other_values_are_not_equal_and_nothing_is_no_agreement(before, after):
    assert not compare_values(before, after, 1e-2).equal


def test_printed_numbers_count():
    assert compare_values(values("step 1 loss 2.0e-3"), values("step 1 loss 2.001e-3"), 1e-2).equal
