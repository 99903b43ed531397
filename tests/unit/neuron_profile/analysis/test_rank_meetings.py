"""Who is late for collectives, and what the job would take if nobody were."""

import numpy as np
import pytest

from neuron_profile.analysis.rank_meetings import ABSENT, RankMeetings


def meetings(ready, duration=10):
    """Meetings of one group; each begins when its last rank is ready."""
    table = np.array(ready, np.int64)
    start = table.max(axis=1)
    ranks = tuple(range(table.shape[1]))
    return RankMeetings(ranks, ranks, table, start, start + duration, np.zeros(len(table), np.int64))


def test_lateness_is_what_the_others_wait():
    late = meetings([[100, 100, 160], [300, 300, 360]]).lateness_ns()
    assert late.tolist() == [0, 0, 120]


def test_time_in_which_several_collectives_wait_at_once_counts_once():
    late = meetings([[100, 160], [120, 170], [300, 300]]).lateness_ns()
    assert late.tolist() == [0, 70]


def test_without_the_late_rank_the_job_ends_that_much_earlier():
    # Each round: 100 ns of work, rank 1 takes 150.
    ready, now = [], 0
    for _ in range(4):
        ready.append([now + 100, now + 150])
        now = ready[-1][1] + 10
    job = meetings(ready)
    assert job.gain_without(1) == 4 * 50
    assert job.gain_without(0) == 0


def test_ranks_that_take_no_part_do_not_count():
    job = meetings([[100, ABSENT, 160], [ABSENT, 300, 260]])
    assert job.lateness_ns().tolist() == [0, 40, 60]
    assert job.gain_without(2) >= 0


@pytest.mark.parametrize("late", [0, 1, 2])
def test_equal_ranks_have_nothing_to_gain(late):
    assert meetings([[100] * 3, [210] * 3, [320] * 3]).gain_without(late) == 0


def test_evened_work_frees_half_of_what_two_ranks_wait():
    job = meetings([[100, 160], [270, 330]])
    assert job.evened_work_ns().tolist() == [[130, 130], [130, 130]]
    assert job.gain_with(job.evened_work_ns()) == 2 * 30
    assert job.evened_work_ns(np.array([True, False])).tolist() == [[130, 130], [100, 160]]
