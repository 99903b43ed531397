"""Stretches of time with few enough spans."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import neuron_tools
from neuron_profile.analysis.time.stretches import cut_times

STARTS = "SELECT start_ts FROM Instruction WHERE process_idx = ?"


@pytest.fixture
def cuts(make_profile, tiny_tables):
    """Cuts of instructions that start at these times."""

    def find(starts, most_rows):
        table = {name: [values[0]] * len(starts) for name, values in tiny_tables["Instruction"].items()}
        table |= {"start_ts": starts, "end_ts": starts, "id": list(range(len(starts)))}
        table["process_idx"] = [0] * len(starts)
        with neuron_tools.open_profile(make_profile(tables={"Instruction": table})) as profile:
            return cut_times(profile, STARTS, [0], most_rows)

    return find


def test_few_spans_are_one_stretch(cuts):
    assert cuts([1, 5, 9], 3) == []


def test_spans_that_lie_unevenly_are_divided_evenly(cuts):
    """A burst and a long tail: equal lengths of time would put all of the burst into one stretch."""
    starts = sorted([*range(100_000, 190_000, 100), *range(0, 1_000_000, 10_000)])
    found = cuts(starts, 100)
    sizes = [
        int(np.searchsorted(starts, high) - np.searchsorted(starts, low))
        for low, high in pairwise([0, *found, 1_000_001])
    ]
    assert sum(sizes) == len(starts)
    assert len(found) >= 9
    assert max(sizes) <= 100


def test_spans_of_one_moment_are_not_divided(cuts):
    assert cuts([7] * 50, 10) == []
