"""A serving loop over time: which requests share an iteration, how many run and wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import neuron_tools
from neuron_profile.analysis.serving_loop import Iteration, ServingLoop, find_serving_loop
from tests.unit.neuron_profile.serving_tables import BATCHED, host_spans


@pytest.fixture
def loop(make_profile) -> Iterator[ServingLoop]:
    with neuron_tools.open_profile(make_profile(tables=host_spans(*BATCHED))) as profile:
        found = find_serving_loop(profile)
        assert found is not None
        yield found


def test_tokens_between_which_no_work_is_dispatched_share_an_iteration(loop: ServingLoop) -> None:
    assert loop.iterations == (
        Iteration(1, start_ns=150, end_ns=300, requests=(0,), tokens=1),
        Iteration(2, start_ns=300, end_ns=505, requests=(0, 1), tokens=2),
        Iteration(3, start_ns=505, end_ns=706, requests=(0, 1), tokens=3),
    )


def test_requests_run_from_their_first_work_on_and_wait_before(loop: ServingLoop) -> None:
    assert loop.range_ns == (100, 706)
    assert loop.running(6).tolist() == [1, 1, 2, 2, 2, 2]
    assert loop.waiting(6).tolist() == [1, 1, 1, 0, 0, 0]


def test_throughput_adds_up_to_the_tokens(loop: ServingLoop) -> None:
    assert loop.tokens_per_s(6).sum() * 101e-9 == pytest.approx(6)


def test_throughput_does_not_fall_between_the_tokens_of_an_iteration(loop: ServingLoop) -> None:
    rates = loop.tokens_per_s(
        101
    )  # the first request is worked on from 150 on, and some iteration at any later time
    assert (rates[9:] > 0).all()
    assert rates.sum() * 6e-9 == pytest.approx(6)
    assert rates[40] * 205e-9 == pytest.approx(2)


def test_an_iteration_begins_when_a_request_can_be_worked_on(make_profile) -> None:
    rows = (
        ("request a", "range", 0, 300), ("mm", "dispatch", 50, 60), ("token a", "range", 90, 100),
        ("request b", "range", 500, 900), ("mm", "dispatch", 550, 560), ("token b", "range", 790, 800),
    )  # fmt: skip
    with neuron_tools.open_profile(make_profile(tables=host_spans(*rows))) as profile:
        found = find_serving_loop(profile)
    assert found is not None
    assert [(iteration.start_ns, iteration.end_ns) for iteration in found.iterations] == [
        (0, 100),
        (500, 800),
    ]


def test_processes_have_iterations_of_their_own(make_profile) -> None:
    rows = (
        ("request a", "range", 0, 300, 0), ("token a", "range", 90, 100, 0),
        ("request a", "range", 0, 300, 1), ("token a", "range", 90, 101, 1),
    )  # fmt: skip
    with neuron_tools.open_profile(make_profile(tables=host_spans(*rows))) as profile:
        found = find_serving_loop(profile)
    assert found is not None
    assert [iteration.requests for iteration in found.iterations] == [(0,), (1,)]


def test_without_requests_there_is_no_loop(make_profile) -> None:
    with neuron_tools.open_profile(make_profile(tables=host_spans(("step", "range", 0, 5)))) as profile:
        assert find_serving_loop(profile) is None
