"""Ranks that hand each other work: uneven stages, few microbatches, uneven experts."""

import numpy as np
import pytest

from neuron_profile.analysis.advice.rules.expert_imbalance import _uneven_exchanges
from neuron_profile.analysis.rank_meetings import RankMeetings
from tests.unit.neuron_profile.analysis.advice.test_rules_of_ranks import collectives, findings

RANKS = (0, 1)


def meetings(operations, ready):
    table = np.array(ready, np.int64)
    start = table.max(axis=1)
    return RankMeetings(
        RANKS, RANKS, table, start, start + 10, np.zeros(len(table), np.int64), tuple(operations)
    )


def operated(rows, *operations):
    """The same rows with other operations, in turn by their number."""
    return {**rows, "operation": [operations[number % len(operations)] for number in rows["op_id"]]}


def exchanged(times, uneven_ns):
    """Exchanges of tokens: every second one waits for experts, the second rank's longer."""
    rounds, now = [], 0
    for number in range(times):
        late_ns = uneven_ns if number % 2 else 0
        rounds.append((now + 10_000, now + 10_000 + late_ns))
        now = rounds[-1][1] + 1_000
    return operated(collectives(rounds), "AllToAll")


@pytest.mark.parametrize(("uneven_ns", "found"), [(8_000, [4 * 4_000]), (400, [])], ids=["uneven", "even"])
def test_experts_with_uneven_tokens(make_profile, uneven_ns, found):
    results = findings("expert_imbalance", make_profile, exchanged(8, uneven_ns))
    assert [finding.gain_ns for finding in results] == found
    assert all(finding.evidence["busiest_rank"] == 1 for finding in results)


def test_experts_run_between_two_exchanges_of_a_group():
    job = meetings(["AllToAll", "AllToAll", "AllReduce", "AllToAll"], [[1, 1], [25, 39], [52, 52], [70, 80]])
    assert _uneven_exchanges(job, job.work_ns()).tolist() == [False, True, False, False]


def test_evened_work_has_the_same_sum():
    job = meetings(["AllToAll", "AllToAll"], [[100, 100], [150, 210]])
    work = job.work_ns()
    even = job.evened_work_ns(np.array([False, True]))
    assert even.sum() == work.sum()
    assert even[1, 0] == even[1, 1]
    assert job.gain_with(even) == (work[1].max() - work[1].min()) // 2


def handed_on(stage_ns, count):
    """Messages of a pipeline of two stages with this work for each."""
    first, second = stage_ns
    rows, ready = [], 0
    for number in range(1, count + 1):
        sent, wanted = number * first, ready
        rows.append((sent, wanted))
        ready = max(sent, wanted) + 1_000 + second
    return operated(collectives(rows), "Send")


@pytest.mark.parametrize(("stages", "is_found"), [((10_000, 40_000), True), ((25_000, 24_000), False)])
def test_uneven_stages(make_profile, stages, is_found):
    results = findings("pipeline_bubbles", make_profile, handed_on(stages, 12))
    told = [finding for finding in results if "works" in finding.title]
    assert bool(told) is is_found


def test_other_collectives_are_no_pipeline(make_profile):
    rows = operated(handed_on((10_000, 40_000), 12), "AllReduce")
    assert findings("pipeline_bubbles", make_profile, rows) == []


def test_messages_make_no_rank_late(make_profile):
    assert findings("collective_skew", make_profile, handed_on((10_000, 40_000), 12)) == []
