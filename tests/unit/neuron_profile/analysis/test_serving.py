"""Time to the first token, and from token to token."""

import pytest

import neuron_tools
from neuron_profile.analysis.request_times import RequestTimes, find_request_times
from neuron_profile.analysis.serving import Request, measure_serving
from tests.unit.neuron_profile.serving_tables import SERVER, host_spans


def measured(make_profile, *rows):
    with neuron_tools.open_profile(make_profile(tables=host_spans(*rows))) as profile:
        return measure_serving(profile)


def test_tokens_are_those_of_their_request(make_profile):
    serving = measured(
        make_profile,
        ("request a", "range", 100, 900), ("request b", "range", 200, 900),
        ("token a", "range", 290, 300), ("token a", "range", 390, 400), ("token a", "range", 590, 600),
        ("token b", "range", 640, 700),
    )  # fmt: skip
    assert (len(serving.requests), serving.tokens) == (2, 4)
    assert [request.first_token_ns for request in serving.requests] == [200, 500]
    assert [request.per_token_ns for request in serving.requests] == [150.0, None]
    assert serving.first_token(0.5) == pytest.approx(350)


def test_an_id_that_comes_again_is_another_request(make_profile):
    serving = measured(
        make_profile,
        ("request a", "range", 100, 400), ("queue a", "range", 100, 150), ("token a", "range", 150, 300),
        ("request a", "range", 500, 900), ("queue a", "range", 500, 520), ("token a", "range", 520, 600),
    )  # fmt: skip
    assert [request.tokens for request in serving.requests] == [1, 1]
    assert [(request.queue_ns, request.first_token_ns) for request in serving.requests] == [
        (50, 200),
        (20, 100),
    ]


def test_without_token_ranges_each_outermost_call_is_one(make_profile):
    serving = measured(
        make_profile,
        ("request 0", "range", 0, 1000),
        ("model", "module", 100, 300), ("model.layer", "module", 110, 290), ("model", "module", 400, 500),
    )  # fmt: skip
    (request,) = serving.requests
    assert (request.first_token_ns, request.per_token_ns) == (300, 200.0)
    assert (request.queue_ns, request.prefill_ns, serving.queue(0.5)) == (None, None, None)


def test_a_request_is_told_by_its_parts(make_profile):
    serving = measured(
        make_profile,
        ("request a", "range", 100, 1100), ("queue a", "range", 100, 300),
        ("token a", "range", 300, 600), ("token a", "range", 700, 800), ("token a", "range", 900, 1100),
    )  # fmt: skip
    assert serving.requests == (
        Request(
            request="a", arrived_ns=100, tokens=3, queue_ns=200, prefill_ns=300, handover_ns=None,
            first_token_ns=500, decode_ns=500, per_token_ns=250.0, tokens_per_s=3e6,
        ),
    )  # fmt: skip
    assert (serving.queue(0.5), serving.tokens_per_s) == (200.0, 3e6)


def test_a_request_that_one_process_prefills_and_another_decodes_is_one(make_profile):
    serving = measured(
        make_profile,
        ("request a", "range", 100, 410), ("queue a", "range", 100, 150), ("token a", "range", 150, 400),
        ("request a", "range", 90, 900, 1), ("queue a", "range", 90, 95, 1),
        ("handover a", "range", 95, 430, 1),
        ("token a", "range", 95, 500, 1), ("token a", "range", 600, 700, 1),
        ("request b", "range", 90, 900, 1), ("queue b", "range", 90, 95, 1),
        ("token b", "range", 95, 500, 1),
    )  # fmt: skip
    alone, handed_over = serving.requests
    assert (alone.request, alone.handover_ns) == ("b", None)
    assert (handed_over.arrived_ns, handed_over.tokens) == (100, 2)
    assert (handed_over.queue_ns, handed_over.prefill_ns, handed_over.handover_ns) == (50, 250, 100)
    assert (handed_over.first_token_ns, handed_over.decode_ns) == (400, 200)


def test_a_request_that_two_processes_name_differently_is_one_where_the_handover_names_both(make_profile):
    serving = measured(
        make_profile,
        ("request a-1", "range", 100, 410), ("queue a-1", "range", 100, 150),
        ("token a-1", "range", 150, 400),
        ("request a-2", "range", 410, 900, 1), ("queue a-2", "range", 410, 420, 1),
        ("handover a-2 a-1", "range", 420, 430, 1), ("token a-2", "range", 420, 500, 1),
    )  # fmt: skip
    (request,) = serving.requests
    assert (request.request, request.arrived_ns, request.tokens) == ("a-2", 100, 1)
    assert (request.prefill_ns, request.handover_ns) == (250, 100)


def test_requests_of_one_name_at_two_processes_are_two_where_none_is_handed_over(make_profile):
    rows = [("request 0", "range", 0, 90, process) for process in range(2)]
    rows += [("token 0", "range", 10, 50, process) for process in range(2)]
    assert len(measured(make_profile, *rows).requests) == 2


def test_a_request_that_the_capture_cut_off_is_told_by_its_queue_and_tokens(make_profile):
    rows = (
        ("request a", "range", 100, 400), ("queue a", "range", 100, 150), ("token a", "range", 150, 300),
        ("queue a", "range", 500, 520), ("token a", "range", 520, 600), ("token a", "range", 620, 700),
        ("queue b", "range", 650, 690), ("token 1", "range", 650, 690),
    )  # fmt: skip
    with neuron_tools.open_profile(make_profile(tables=host_spans(*rows))) as profile:
        finished, cut_off = find_request_times(profile)
    assert (finished.is_finished, finished.token_ns) == (True, (300,))
    assert cut_off == RequestTimes(0, "a", 500, 520, 700, (600, 700), SERVER, 4, is_finished=False)


def test_an_aborted_request_is_told_of_and_no_latency_that_it_lacks(make_profile):
    serving = measured(
        make_profile,
        ("request a", "range", 100, 900), ("queue a", "range", 100, 150), ("token a", "range", 150, 300),
        ("token a", "range", 300, 400), ("abort a", "range", 900, 900),
        ("request b", "range", 200, 500), ("queue b", "range", 200, 250), ("abort b", "range", 500, 500),
        ("request c", "range", 210, 520), ("queue c", "range", 210, 520), ("abort c", "range", 520, 520),
        ("request d", "range", 600, 800), ("model", "module", 620, 640),
    )  # fmt: skip
    during, before, queued = serving.requests
    assert serving.aborted == 3
    assert (during.first_token_ns, during.per_token_ns, during.tokens) == (200, 100.0, 2)
    assert (before.queue_ns, before.prefill_ns, before.first_token_ns, before.tokens) == (50, None, None, 0)
    assert (queued.queue_ns, queued.first_token_ns, queued.tokens_per_s) == (None, None, 0.0)
    assert (serving.first_token(1.0), serving.per_token(1.0), serving.queue(1.0)) == (200, 100, 50)
    assert serving.tokens_per_s == 2 / 300e-9


def test_nothing_is_told_where_all_requests_were_aborted_before_a_token(make_profile):
    rows = (("request a", "range", 0, 9), ("abort a", "range", 9, 9))
    assert measured(make_profile, *rows) is None


def test_a_request_whose_queue_was_recorded_before_it_is_one(make_profile):
    serving = measured(
        make_profile,
        ("queue a", "range", 0, 50), ("request a", "range", 60, 400), ("token a", "range", 150, 300),
    )  # fmt: skip
    assert [(request.arrived_ns, request.tokens) for request in serving.requests] == [(60, 1)]


def test_the_time_per_token_is_unknown_where_no_request_has_two(make_profile):
    serving = measured(make_profile, ("request a", "range", 0, 100), ("token a", "range", 40, 50))
    assert serving.per_token(0.5) is None


def test_ranges_of_other_names_are_no_requests(make_profile):
    assert measured(make_profile, ("request for help", "range", 0, 9), ("step", "range", 0, 5)) is None
