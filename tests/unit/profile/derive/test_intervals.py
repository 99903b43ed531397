import numpy as np
import pytest
from hypothesis import given, strategies as st

from neuron_tools.profile.derive.intervals import (
    NO_ISLANDS,
    at_most,
    merged,
    union,
    union_by_group,
)

SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 12)), max_size=60)


def arrays(rows):
    group, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    return group, start, start + length


def pairs(islands):
    return list(zip(islands.start.tolist(), islands.end.tolist()))


def plain(by_group):
    return {group: pairs(islands) for group, islands in by_group.items()}


def naive_union(rows):
    """One span after the other, each joined to the island it overlaps or touches."""
    islands = {}
    for group, start, end in sorted((group, start, start + length) for group, start, length in rows):
        mine = islands.setdefault(group, [])
        if mine and start <= mine[-1][1]:
            mine[-1] = (mine[-1][0], max(mine[-1][1], end))
        else:
            mine.append((start, end))
    return islands


@given(SPANS)
def test_the_union_is_that_of_the_plain_loop(rows):
    assert plain(union_by_group(*arrays(rows))) == naive_union(rows)


@given(SPANS)
def test_one_group_needs_no_numbers(rows):
    _, start, end = arrays(rows)
    assert pairs(union(start, end)) == naive_union([(0, *row[1:]) for row in rows]).get(0, [])


@given(st.lists(SPANS, max_size=4))
def test_unions_merge_to_the_union_of_all(parts):
    islands = [union(*arrays(rows)[1:]) for rows in parts]
    together = [(0, *row[1:]) for rows in parts for row in rows]
    assert pairs(merged(islands)) == naive_union(together).get(0, [])


def test_times_that_leave_no_room_for_many_groups_are_exact():
    far = (1 << 61) - 1
    spans = np.array([0, 0, 5, 5]), np.array([0, 2, 1, 9]), np.array([3, far, 4, far])
    assert plain(union_by_group(*spans)) == {0: [(0, far)], 5: [(1, 4), (9, far)]}


def test_touching_spans_join_and_empty_ones_count_nothing():
    islands = union(np.array([0, 5, 20]), np.array([5, 10, 20]))
    assert pairs(islands) == [(0, 10), (20, 20)]
    assert pairs(islands.without_empty()) == [(0, 10)]
    assert islands.total == 10


@given(SPANS, st.integers(1, 6))
def test_few_enough_intervals_cover_all_and_keep_the_ends(rows, limit):
    for islands in union_by_group(*arrays(rows)).values():
        fewer = at_most(islands, limit)
        assert len(fewer) == min(limit, len(islands))
        assert (fewer.start[0], fewer.end[-1]) == (islands.start[0], islands.end[-1])
        within = np.searchsorted(fewer.start, islands.start, side="right") - 1
        assert np.all(islands.end <= fewer.end[within])


def test_the_shortest_gaps_are_closed_first():
    islands = union(np.array([0, 11, 100, 112]), np.array([10, 21, 110, 113]))
    assert pairs(at_most(islands, 2)) == [(0, 21), (100, 113)]


@pytest.mark.parametrize("limit", [1, 3])
def test_nothing_stays_nothing(limit):
    assert pairs(at_most(NO_ISLANDS, limit)) == []
    assert pairs(merged([])) == []
