"""How long it takes to put values side by side."""

from __future__ import annotations

from neuron_profile.analysis.whatif.joining import joining_values_ns
from neuron_tools import hardware

CORE = hardware.get("trn2")


def test_each_value_takes_its_turn_behind_the_start_of_the_first():
    one, few, many = (joining_values_ns(CORE, values, 4) for values in (1, 5, 1000))
    assert 0 < one < few < 2 * one
    assert few < many < 1000 * one


def test_large_values_take_as_long_as_their_bytes():
    small, large = (joining_values_ns(CORE, 8, size) for size in (4, 1 << 20))
    assert large > 10 * small
