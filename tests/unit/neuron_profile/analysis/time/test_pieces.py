"""Charged time on an axis: pieces never overlap, and each key's are as long as what it is charged with."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from neuron_profile.analysis.time.charged_track import ChargedTrack
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_profile.analysis.time.core_window import core_window
from neuron_profile.analysis.time.pieces import Pieces, divided, pieces_of
from neuron_tools import open_profile
from neuron_tools.profile.exposure import OrderedSpans, Spans, exposed_ns
from tests.unit.neuron_profile.analysis.time.test_one_definition import NANOSECOND, random_tables

TIER = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15), st.integers(0, 4)), max_size=8)


def lengths(pieces):
    return np.bincount(pieces.key, pieces.end_ns - pieces.start_ns, minlength=5)


@given(tiers=st.lists(TIER, min_size=1, max_size=3))
def test_pieces_are_what_each_key_is_charged_with(tiers):
    rows = [np.array(tier, np.int64).reshape(-1, 3) for tier in tiers]
    spans = [Spans(tier[:, 0], tier[:, 0] + tier[:, 1]) for tier in rows]
    keys = [tier[:, 2] for tier in rows]
    pieces = pieces_of(OrderedSpans.of(spans), np.concatenate(keys))
    assert (pieces.start_ns[1:] >= pieces.end_ns[:-1] - NANOSECOND).all()
    expected = np.bincount(np.concatenate(keys), np.concatenate(exposed_ns(spans)), minlength=5)
    assert lengths(pieces) == pytest.approx(expected, abs=NANOSECOND)


def test_a_stretch_that_two_share_is_cut_into_one_piece_for_each():
    both = Spans(np.array([0, 10, 20]), np.array([100, 15, 25]))
    pieces = pieces_of(OrderedSpans.of([both]), np.array([0, 1, 1]))
    assert pieces.key.tolist() == [0, 1, 0, 1, 0]
    assert lengths(pieces)[:2].tolist() == [95, 5]


def test_what_encloses_others_has_what_they_leave():
    inner, outer = Spans(np.array([30]), np.array([50])), Spans(np.array([0]), np.array([100]))
    pieces = pieces_of(OrderedSpans.of([inner, outer]), np.array([1, 2]))
    assert list(zip(pieces.start_ns, pieces.end_ns, pieces.key, strict=True)) == [
        (0, 30, 2), (30, 50, 1), (50, 100, 2),
    ]  # fmt: skip


def test_a_mixture_is_cut_by_its_shares():
    pieces = Pieces(np.array([0.0, 10]), np.array([10.0, 20]), np.array([7, 2]))
    cut = divided(pieces, [(np.array([0, 1]), np.array([0.25, 0.75]))], 7)
    assert list(zip(cut.start_ns, cut.end_ns, cut.key, strict=True)) == [
        (0, 2.5, 0),
        (2.5, 10, 1),
        (10, 20, 2),
    ]


def test_a_track_shows_what_its_names_are_charged_with(make_profile, tiny_tables):
    with open_profile(make_profile(tables=random_tables(tiny_tables, 3))) as profile:
        charges = charge_device_time(profile, hlo="hlo_name")
        operations: dict[str, float] = {}
        for charge in charges.charges:
            name = charge.origin.operation
            operations[name] = operations.get(name, 0) + charge.device_ns
        expected = {"framework": operations, "hlo": {name: ns for name, ns in charges.hlo.items() if name}}
        for level, times in expected.items():
            track = ChargedTrack(core_window(profile, (0, 0)), level)
            pieces = track.between(0, 10_000)
            shown: dict[str, float] = {}
            names = track.names(pieces.key).to_pylist()
            for name, ns in zip(names, pieces.end_ns - pieces.start_ns, strict=True):
                shown[name] = shown.get(name, 0) + ns
            assert shown == {name: pytest.approx(ns, abs=NANOSECOND) for name, ns in times.items() if ns > 0}


def test_pieces_of_a_range_are_those_of_the_whole_cut_to_it(make_profile, tiny_tables):
    with open_profile(make_profile(tables=random_tables(tiny_tables, 4))) as profile:
        track = ChargedTrack(core_window(profile, (0, 0)), "framework")
        halves = [track.between(low, low + 4000) for low in (0, 4000)]
        whole = track.between(0, 8000)
        sums = [np.bincount(each.key, each.end_ns - each.start_ns, minlength=30) for each in (*halves, whole)]
        assert sums[0] + sums[1] == pytest.approx(sums[2], abs=NANOSECOND)
