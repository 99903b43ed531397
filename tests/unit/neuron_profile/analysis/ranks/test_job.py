"""Ranks are put together exactly: transfers apart from waits, stragglers by name."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from neuron_profile.analysis.ranks.job import Bystander, reduce_ranks
from neuron_profile.analysis.ranks.partial import CollectiveCalls, RankKey, RankPartial
from neuron_profile.analysis.ranks.waits import CollectiveCost

GROUP = "[0,1,2]"


def partial(rank, device_ns, taken_ns, operations=None, ends_ns=(300, 600)):
    """A rank whose collectives end at given times and whose window begins at 0."""
    taken = np.array(taken_ns, np.int64)
    calls = CollectiveCalls(
        ["AllReduce"] * len(taken), np.full(len(taken), 64), np.array(ends_ns[: len(taken)]) - taken, taken
    )
    return RankPartial(
        RankKey("job.nprof", rank, rank), 1, device_ns, 0, device_ns + 10, 7, {"tensor": 10 * rank},
        operations or {"mm": (float(device_ns), 2)}, {GROUP: calls},
    )  # fmt: skip


# The first call is joined last by rank 2, the second by rank 1; transfers take 10 and 20 ns.
RANKS = [partial(0, 1000, [110, 25]), partial(1, 1000, [60, 20]), partial(2, 1150, [10, 50])]


def test_transfer_is_what_the_last_rank_took():
    (cost,) = reduce_ranks(RANKS).collectives
    assert cost == CollectiveCost("AllReduce", 64, 2, 3, 30, (100 + 50 + 0) / 3 + (5 + 0 + 30) / 3)


def test_waits_are_charged_to_the_rank_that_came_last():
    job = reduce_ranks(RANKS)
    assert [row.waited_ns for row in job.ranks] == [105, 50, 30]
    assert [row.waited_for_ns for row in job.ranks] == [0, 35, 150]
    assert sum(row.waited_ns for row in job.ranks) == sum(row.waited_for_ns for row in job.ranks)


def test_waiting_in_two_collectives_at_once_counts_once():
    early = partial(0, 1000, [200, 490], ends_ns=(300, 600))  # joins at 100 and 110
    late = partial(1, 1000, [10, 10], ends_ns=(300, 600))
    first, second = reduce_ranks([early, late]).ranks
    assert (first.waited_ns, second.waited_for_ns) == ((290 - 100) + (590 - 290), 490)
    assert not first.straggler
    assert second.straggler  # 1010 of its own against 520


def test_waiting_outside_the_window_is_not_counted():
    early = partial(0, 1000, [200], ends_ns=(100,))  # joins before the first execution
    assert reduce_ranks([early, partial(1, 1000, [20], ends_ns=(100,))]).ranks[0].waited_ns == 80


def test_the_straggler_is_slow_without_its_waits():
    assert reduce_ranks(RANKS).stragglers == (2,)
    assert reduce_ranks([partial(rank, 1000, [10]) for rank in range(4)]).stragglers == ()


def test_the_order_in_which_ranks_come_does_not_matter():
    shuffled = RANKS * 1
    random.Random(1).shuffle(shuffled)
    assert reduce_ranks(shuffled) == reduce_ranks(RANKS)


def test_operations_and_engines_over_the_ranks():
    job = reduce_ranks([partial(0, 10, []), partial(1, 30, [], {"mm": (20.0, 1), "gelu": (10.0, 4)})])
    mm, gelu = job.operations
    assert (mm.operation, mm.total_ns, mm.calls, mm.ranks, mm.most_rank) == ("mm", 30.0, 3, 2, 1)
    assert (gelu.least_ns, gelu.most_ns, gelu.ranks) == (10.0, 10.0, 1)
    (engine,) = job.engines
    assert (engine.mean_ns, engine.least_ns, engine.most_ns) == (5.0, 0, 10)
    assert [row.idle_ns for row in job.ranks] == [10, 10]


def test_a_launcher_is_named_and_not_compared():
    launcher = RankPartial(RankKey("job.nprof", 0, None, "head", "torchrun train.py"), 0, 0, 0, 0, 0, {}, {})
    lost = RankPartial(RankKey("job.nprof", 9, 3), 0, 0, 0, 0, 0, {}, {})
    job = reduce_ranks([launcher, lost, *RANKS])
    assert job.without_device_work == (
        Bystander("rank 3", "", "", "job.nprof"),
        Bystander("launcher", "head", "torchrun train.py", "job.nprof"),
    )
    assert replace(job, without_device_work=()) == reduce_ranks(RANKS)


def test_ranks_without_a_number_stay_in_the_order_given():
    keys = [RankKey(path, 0, None, place=place) for place, path in enumerate(["a", "rank10", "rank9"])]
    launcher = RankPartial(keys[0], 0, 0, 0, 0, 0, {}, {})
    working = [RankPartial(key, 1, 100 + key.place, 0, 200, 0, {}, {}) for key in keys[1:]]
    job = reduce_ranks([working[1], launcher, working[0]])
    assert [(row.rank, row.device_ns) for row in job.ranks] == [(0, 101), (1, 102)]


def test_no_ranks_at_all():
    assert reduce_ranks([]).ranks == ()
