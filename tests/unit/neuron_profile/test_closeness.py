from __future__ import annotations

import numpy as np
import pytest

from neuron_profile.closeness import largest_difference


@pytest.mark.parametrize(
    ("found", "difference"),
    [([1.0, 2.0], 0.0), ([1.0, 2.2], 0.1), ([np.nan, 2.0], np.inf), ([1.0], np.inf)],
)
def test_how_far_values_are_off(found, difference):
    expected = (np.array([1.0, 2.0]),)
    assert largest_difference((np.array(found),), expected) == pytest.approx(difference)
