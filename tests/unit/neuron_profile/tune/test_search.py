from __future__ import annotations

from pathlib import Path

import pytest

from neuron_profile.tune.measurement import Candidate, Measurement, Refusal

pytest.importorskip("optuna")
pytest.importorskip("pebble")

from neuron_profile.tune.proposals import Proposals
from neuron_profile.tune.search import pareto_front
from neuron_profile.tune.space import Space

KERNEL = Candidate(Path("kernel.py"), "kernel")


def measured(time_ns, sbuf_bytes, refusal=None):
    return Measurement(KERNEL, time_ns, sbuf_bytes, refusal=refusal)


def test_the_front_has_what_nothing_beats_in_both():
    tried = {
        0: measured(10, 90),
        1: measured(20, 50),
        2: measured(30, 60),
        3: measured(5, 99, Refusal.VALUES),
    }
    assert pareto_front(tried) == [0, 1]


def test_of_equal_candidates_the_first_stands_on_the_front():
    assert pareto_front({0: measured(10, 90), 1: measured(10, 90)}) == [0]


def test_a_small_space_is_tried_in_full():
    proposals = Proposals(Space({"a": (1, 2), "b": ("x", "y")}), 10, 0)
    asked = proposals.ask(3) + proposals.ask(3)
    assert len({tuple(each.items()) for each in asked}) == len(asked) == 4


def test_no_candidate_is_proposed_twice_and_good_ones_are_found():
    space = Space({name: tuple(range(8)) for name in "abcd"})
    proposals, seen = Proposals(space, 200, 0), {}
    for _ in range(25):
        asked = proposals.ask(8)
        for each in asked:
            key = tuple(each.values())
            assert key not in seen
            seen[key] = sum((value - 5) ** 2 for value in key)
            proposals.tell(each, seen[key])
    assert len(seen) == 200
    assert min(seen.values()) <= 1
