"""Layouts of a job: how a command takes them, and which of them nothing beats."""

import pytest

from neuron_profile.analysis.job_step import JobStep, RankStep
from neuron_profile.analysis.layouts import Layout, failure_of, layouts, result_of, with_front
from neuron_tools.errors import UsageError


def step(step_ns, peak_bytes, hbm_bytes=100):
    rank = RankStep(0, 1, 0, 1, 1, 0, 0, 1, 0.5, peak_bytes)
    return JobStep(step_ns, 8, None, 0.5, peak_bytes, hbm_bytes, "computing", (rank,))


def test_every_combination_is_a_layout():
    found = layouts({"dp": (2, 4), "tp": (8,)})
    assert [(each.text, each.ranks) for each in found] == [("dp 2, tp 8", 16), ("dp 4, tp 8", 32)]


def test_a_degree_that_is_named_twice_is_one_layout():
    assert len(layouts({"dp": (2, 4, 2), "tp": (8, 8)})) == 2


def test_a_layout_is_called_by_what_it_shares():
    assert Layout((("pp", 1), ("dp", 4), ("tp", 1))).text == "dp 4"
    assert Layout((("dp", 1), ("tp", 1))).text == "one rank"


def test_degrees_go_where_the_command_says():
    layout = Layout((("pp", 2), ("dp", 4), ("tp", 8)))
    assert layout.fill(["--tp={tp}", "{pp}", "{ranks}"]) == ("--tp=8", "2", "64")
    with pytest.raises(UsageError, match="where --pp goes"):
        layout.fill(["--tp={tp}"])


def test_experts_share_the_ranks_of_a_stage():
    layout = Layout((("pp", 2), ("dp", 4), ("tp", 2), ("ep", 8)))
    assert (layout.ranks, layout.problem) == (16, "")
    with pytest.raises(UsageError, match="where --ep goes"):
        layout.fill(["{pp}", "{tp}"])


def test_experts_on_ranks_that_do_not_divide_a_stage_are_no_layout():
    layout = Layout((("pp", 2), ("dp", 4), ("ep", 8)))
    assert layout.problem == "experts on 8 ranks do not divide the 4 of a pipeline stage"


def test_what_another_beats_is_not_on_the_front():
    rows = with_front(
        [
            result_of(Layout((("dp", 2),)), step(1_000, 50), 10),
            result_of(Layout((("dp", 2),)), step(2_000, 60), 10),
            result_of(Layout((("dp", 4),)), step(800, 40), 10),
            result_of(Layout((("dp", 8),)), step(100, 200), 10),
            failure_of(Layout((("dp", 1),)), "it failed"),
        ]
    )
    assert [row.on_front for row in rows] == [True, False, True, False, False]
    assert rows[0].tokens_per_second == pytest.approx(1e7)
    assert not rows[3].fits
