import itertools

import numpy as np
from hypothesis import given, settings, strategies as st

from neuron_tools.profile.timeline.depths import DepthAssigner

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), min_size=1, max_size=40)


def assigned(pairs, cuts=()):
    start, duration = (np.array(column, np.int64) for column in zip(*pairs))
    order = np.lexsort((-duration, start))
    start, duration = start[order], duration[order]
    assigner = DepthAssigner()
    edges = [0, *sorted(cut % len(start) for cut in cuts), len(start)]
    depths = [assigner.assign(start[a:b], (start + duration)[a:b]) for a, b in itertools.pairwise(edges)]
    return start, start + duration, np.concatenate(depths)


@settings(deadline=None)
@given(spans, st.lists(st.integers(0, 40), max_size=3))
def test_no_two_spans_of_a_depth_overlap_wherever_segments_end(pairs, cuts):
    start, end, depths = assigned(pairs, cuts)
    for depth in np.unique(depths):
        here = depths == depth
        assert np.all(start[here][1:] >= np.maximum.accumulate(end[here])[:-1])


@settings(deadline=None)
@given(spans)
def test_no_more_depths_than_spans_that_are_open_at_once(pairs):
    start, end, depths = assigned(pairs)
    end = np.maximum(end, start + 1)
    most = max(int(np.count_nonzero((start <= time) & (end > time))) for time in start)
    assert depths.max() < most


def test_enclosed_spans_stand_one_below():
    _, _, depths = assigned([(0, 100), (10, 40), (20, 10), (60, 30), (100, 5)])
    assert depths.tolist() == [0, 1, 2, 1, 0]


def test_spans_that_follow_each_other_stand_at_the_top():
    _, _, depths = assigned([(0, 5), (5, 5), (10, 0), (10, 3)])
    assert depths.tolist() == [0, 0, 0, 1] or depths.tolist() == [0, 0, 0, 0]


def test_what_is_open_at_a_segments_end_keeps_its_depth():
    _, _, depths = assigned([(0, 100), (10, 5), (20, 5), (120, 5)], cuts=(1, 2))
    assert depths.tolist() == [0, 1, 1, 0]


def test_spans_that_only_overlap_take_depths_in_turn():
    _, _, depths = assigned([(0, 15), (10, 15), (20, 15), (30, 15), (50, 5)])
    assert depths.tolist() == [0, 1, 0, 1, 0]
