import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_tools.profile.derive import intervals
from neuron_tools.profile.derive.intervals import Intervals, IntervalUnion, at_most, union

SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 12)), max_size=60)


def of_rows(rows):
    group, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    return Intervals(group, start, start + length)


def as_rows(islands):
    return list(zip(islands.group.tolist(), islands.start.tolist(), islands.end.tolist()))


def naive_union(rows):
    """One span after the other, each joined to the island it overlaps or touches."""
    islands = []
    for group, start, end in sorted((group, start, start + length) for group, start, length in rows):
        if islands and islands[-1][0] == group and start <= islands[-1][2]:
            islands[-1][2] = max(islands[-1][2], end)
        else:
            islands.append([group, start, end])
    return [tuple(island) for island in islands]


@given(SPANS)
def test_the_union_is_that_of_the_plain_loop(rows):
    assert as_rows(union(of_rows(rows))) == naive_union(rows)


@given(SPANS, st.integers(1, 7))
def test_batches_in_any_cut_give_the_same_union(rows, size):
    stream = IntervalUnion()
    for first in range(0, len(rows), size):
        stream.add_intervals(of_rows(rows[first : first + size]))
    assert as_rows(stream.islands()) == naive_union(rows)


def test_a_long_stream_is_merged_on_the_way(monkeypatch):
    monkeypatch.setattr(intervals, "_MERGE_ROWS", 4)
    stream = IntervalUnion()
    rows = [(0, 3 * n, 1) for n in range(20)]
    for row in rows:
        stream.add_intervals(of_rows([row]))
    assert len(stream._parts) < 20
    assert as_rows(stream.islands()) == naive_union(rows)


def test_times_that_leave_no_room_for_many_groups_are_exact():
    far = (1 << 61) - 1
    spans = Intervals(np.array([0, 0, 5, 5]), np.array([0, 2, 1, 9]), np.array([3, far, 4, far]))
    assert as_rows(union(spans)) == [(0, 0, far), (5, 1, 4), (5, 9, far)]


def test_touching_spans_join_and_empty_ones_count_nothing():
    islands = union(of_rows([(0, 0, 5), (0, 5, 5), (0, 20, 0)]))
    assert as_rows(islands) == [(0, 0, 10), (0, 20, 20)]
    assert as_rows(islands.without_empty()) == [(0, 0, 10)]
    assert islands.total == 10


def test_totals_are_per_group():
    assert of_rows([(7, 0, 5), (2, 0, 1), (7, 9, 4)]).totals() == {2: 1, 7: 9}


@given(SPANS, st.integers(1, 6))
def test_few_enough_intervals_cover_all_and_keep_the_ends(rows, limit):
    islands = union(of_rows(rows))
    fewer = at_most(islands, limit)
    for group in set(islands.group.tolist()):
        mine, kept = islands.take(islands.group == group), fewer.take(fewer.group == group)
        assert len(kept) == min(limit, len(mine))
        assert (kept.start[0], kept.end[-1]) == (mine.start[0], mine.end[-1])
        within = np.searchsorted(kept.start, mine.start, side="right") - 1
        assert np.all(mine.end <= kept.end[within])


def test_the_shortest_gaps_are_closed_first():
    islands = union(of_rows([(0, 0, 10), (0, 11, 10), (0, 100, 10), (0, 112, 1), (1, 0, 1), (1, 2, 1)]))
    assert as_rows(at_most(islands, 2)) == [(0, 0, 21), (0, 100, 113), (1, 0, 1), (1, 2, 3)]


@pytest.mark.parametrize("operation", [union, lambda none: at_most(none, 3)])
def test_nothing_stays_nothing(operation):
    assert as_rows(operation(intervals.empty())) == []
