"""Queues of streams: what waits, and how long from launch to start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from neuron_profile.analysis.traces.launches import find_stream_queues, launch_delays, waiting_over_time
from tests.fixtures.gpu_trace import gpu_document
from tests.unit.neuron_profile.analysis.traces.tiny_trace import open_trace
from tests.unit.profile.importers.importing import imported


def test_each_stream_has_its_launches_and_their_delays(tmp_path):
    with imported(tmp_path, gpu_document(steps=1)) as profile:
        compute, collectives = find_stream_queues(profile)

    assert (compute.stream, compute.launches, compute.most_waiting) == ("GPU 0 / Stream 7", 3, 2)
    # Launches end at 12, 31 and 94 µs; work begins at 14, 115 and 160 µs.
    assert compute.median_delay_ns == 66_000
    # Waiting: 8-14 one, 28-88 one, 88-115 two, 115-160 one, of 152 µs.
    assert compute.mean_waiting == pytest.approx((6 + 60 + 2 * 27 + 45) / 152)
    assert compute.call_ns == 13_000
    assert (collectives.launches, collectives.median_delay_ns, collectives.short) == (1, 45_000, 0)


def test_without_launches_there_is_no_queue(tmp_path):
    with open_trace(tmp_path, [(2, "gemm", "kernel", 10, 60, None)]) as profile:
        assert find_stream_queues(profile) == ()


launches = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), min_size=1, max_size=40)


@given(launches)
def test_the_queue_equals_a_count_of_launches_that_have_not_begun(rows):
    launched = np.array([start for start, _ in rows], np.int64)
    begun = launched + np.array([delay for _, delay in rows], np.int64)
    times, waiting = waiting_over_time(launched, begun)
    for moment in np.unique(times):
        last = waiting[np.flatnonzero(times == moment)[-1]]
        assert last == np.count_nonzero((launched <= moment) & (begun > moment))
    assert waiting[-1] == 0


def test_work_that_begins_inside_the_call_is_not_delayed():
    assert launch_delays(np.array([10, 10]), np.array([8, 13])).tolist() == [0, 3]
