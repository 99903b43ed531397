import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools.profile.export.lanes import NestedLanes, nested_event_order
from neuron_tools.profile.timeline.depths import DepthAssigner

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), min_size=1, max_size=60)


def arrays(spans):
    start = np.array([start for start, _ in spans], np.int64)
    return start, start + np.array([length for _, length in spans], np.int64)


def in_batches(lanes, start, end, rows):
    batches = [slice(first, first + rows) for first in range(0, len(start), rows)]
    return np.concatenate([lanes.assign(start[batch], end[batch]) for batch in batches])


def most_at_once(start, end):
    """How many spans are open at the busiest instant; an instant span counts at its own."""
    instants = [0] + [int(np.count_nonzero((start <= at) & (at < end))) for at in start]
    return max(instants)


@settings(deadline=None)  # compiling takes its time at the first call
@given(SPANS, st.integers(1, 7))
def test_flat_lanes_never_hold_two_spans_at_once(spans, batch_rows):
    start, end = arrays(sorted(spans))
    colouring = DepthAssigner()
    lanes = in_batches(colouring, start, end, batch_rows)

    for lane in np.unique(lanes):
        own = lanes == lane
        assert np.all(start[own][1:] >= end[own][:-1])


@settings(deadline=None)
@given(SPANS)
def test_flat_lanes_are_as_many_as_spans_are_open_at_once(spans):
    lasting = [(start, length + 1) for start, length in spans]
    start, end = arrays(sorted(lasting))

    lanes = DepthAssigner().assign(start, end)

    assert lanes.max() + 1 == most_at_once(start, end)


def test_pipelined_spans_alternate_between_two_lanes():
    start = np.array([0, 5, 10, 15])

    assert DepthAssigner().assign(start, start + 8).tolist() == [0, 1, 0, 1]


@given(SPANS, st.integers(1, 9))
def test_nested_lanes_hold_only_spans_that_contain_each_other_or_do_not_touch(spans, batch_rows):
    start, end = arrays(sorted(spans, key=lambda span: (span[0], -span[1])))
    placing = NestedLanes()
    lanes = in_batches(placing, start, end, batch_rows)

    for lane in np.unique(lanes):
        own = [(s, e) for s, e, where in zip(start, end, lanes) if where == lane]
        for index, (first_start, first_end) in enumerate(own):
            for later_start, later_end in own[index + 1 :]:
                assert later_start >= first_end or later_end <= first_end, (first_start, later_start)


def test_spans_that_nest_share_one_lane():
    start, end = np.array([0, 0, 2, 5, 5, 10]), np.array([10, 4, 4, 9, 5, 12])

    assert NestedLanes().assign(start, end).tolist() == [0] * 6


def test_a_span_that_crosses_another_gets_its_own_lane():
    assert NestedLanes().assign(np.array([0, 5]), np.array([10, 15])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 10), (2, 4)], "B0 B1 E1 E0"),
        ([(0, 5), (5, 9)], "B0 E0 B1 E1"),
        ([(0, 5), (0, 5)], "B0 B1 E1 E0"),
        ([(0, 5), (5, 5)], "B0 E0 B1 E1"),
        ([(3, 3), (3, 3)], "B0 E0 B1 E1"),
        ([(3, 8), (3, 3)], "B0 B1 E1 E0"),
    ],
)
def test_events_at_one_instant_end_inner_first_then_begin_outer_first(spans, expected):
    start, end = np.array([s for s, _ in spans]), np.array([e for _, e in spans])

    order = nested_event_order(start, end)

    count = len(spans)
    assert " ".join(f"B{i}" if i < count else f"E{i - count}" for i in order) == expected
