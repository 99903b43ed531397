"""How long a cast to bf16 takes."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.whatif.casting import narrowing_ns
from neuron_tools import hardware

CORE, ONE = hardware.get("trn2"), hardware.get("trn2", lnc=1)


def test_small_tensors_take_the_start_of_two_transfers():
    assert narrowing_ns(CORE, 1) == pytest.approx(narrowing_ns(CORE, 1024), rel=0.1)


def test_two_physical_cores_share_a_tensor():
    assert narrowing_ns(CORE, 1 << 24) == pytest.approx(narrowing_ns(ONE, 1 << 23), rel=0.1)


def test_large_tensors_take_as_long_as_their_elements():
    assert narrowing_ns(CORE, 1 << 24) == pytest.approx(2 * narrowing_ns(CORE, 1 << 23), rel=0.05)
