"""Every analysis on every kind of profile: a result that adds up, or the sentence saying what is lacking."""

from __future__ import annotations

import json

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import RULES, advise, what_is_lacking
from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.analyses import run_analysis
from neuron_profile.analysis.budget.budget import Budget
from neuron_profile.analysis.budget.checks import check_budget
from neuron_profile.analysis.catalogue import ANALYSES
from neuron_profile.analysis.comparison.difference import compare
from neuron_profile.analysis.errors import LacksDataError
from neuron_profile.analysis.idle_reasons import PARTS
from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.ranks.engine import summarise_job
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_profile.analysis.whatif.causal import find_causes
from neuron_profile.reports.analysis_text import as_json
from tests.integration.analysis.kinds_of_profiles import CAPTURES, MAKERS

GIVE = {
    "transformer": {"expected", "step", "idle", "roofline", "critical-path", "memory"},
    "nki_kernel": {"expected", "step", "idle", "roofline", "critical-path", "memory"},
    "jax_program": {"expected", "step", "idle", "roofline", "critical-path", "memory"},
    "host_trace": {"critical-path"},
    "gpu_trace": {"idle", "kernels", "queue", "critical-path", "communication"},
    "device": {"idle", "critical-path", "memory"},
}
KINDS = pytest.mark.parametrize("kind", MAKERS)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """Paths by kind, each made when it is first asked for."""
    made = {}

    def path(kind):
        if kind not in made:
            made[kind] = MAKERS[kind](tmp_path_factory.mktemp(kind))
        return made[kind]

    return path


@pytest.fixture
def profile(profiles, kind):
    with neuron_tools.open_profile(profiles(kind)) as opened:
        yield opened


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", ANALYSES.names())
def test_a_result_or_what_is_lacking(profile, kind, name):
    if name not in GIVE[kind]:
        with pytest.raises(LacksDataError, match="lacks the data for this analysis: it has no"):
            run_analysis(profile, name)
        return
    result = run_analysis(profile, name)
    assert json.loads(as_json(name, result))["result"]


@pytest.mark.slow
@KINDS
def test_parts_add_up(profile, kind):
    path = run_analysis(profile, "critical-path")
    assert sum(entry.path_ns for entry in path.entries) == pytest.approx(path.total_ns, abs=1)
    assert all(0 <= entry.path_ns <= path.total_ns for entry in path.entries)
    if "idle" in GIVE[kind] and kind != "gpu_trace":
        for row in run_analysis(profile, "idle"):
            assert sum(getattr(row, part) for part in PARTS) == row.window_ns
    if "roofline" in GIVE[kind]:
        assert all(0 <= point.of_bound <= 1 for point in run_analysis(profile, "roofline").points)


@pytest.mark.slow
@KINDS
def test_every_other_view_takes_it(profile, kind):
    overview = make_overview(profile)
    charges = charge_device_time(profile)
    if overview.is_device_alone:  # the time of instructions and transfers, without executions around them
        assert 0 < charges.device_ns <= overview.total_ns
    else:
        assert charges.device_ns == pytest.approx(overview.occupancy.device_ns, abs=1)
    findings = advise(profile)
    assert {finding.rule for finding in findings} <= set(RULES.names())
    assert all(0 <= finding.gain <= 1 for finding in findings)
    assert (what_is_lacking(Context(profile)) == "") == (kind in CAPTURES)
    assert (find_causes(Context(profile), limit=2) is not None) == (kind in CAPTURES)
    (check,) = check_budget(profile, Budget({"time_ms": 1e9}))
    assert check.holds == (kind in (*CAPTURES, "device"))  # other tools' traces tell of no executions


@pytest.mark.slow
@KINDS
def test_it_differs_from_itself_by_nothing(profiles, profile, kind):
    if kind == "host_trace":
        with pytest.raises(LacksDataError, match="no spans of a device"):
            compare(profile, profile)
        return
    with neuron_tools.open_profile(profiles(kind)) as same:
        difference = compare(profile, same)
    assert {delta.change for delta in difference.deltas} <= {"same"}
    assert difference.base_device_ns == difference.new_device_ns


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*CAPTURES, "gpu_trace"])
def test_it_is_one_rank_of_a_job(profiles, kind):
    (rank,) = summarise_job([str(profiles(kind))]).ranks
    assert rank.device_ns > 0
    assert not rank.straggler
