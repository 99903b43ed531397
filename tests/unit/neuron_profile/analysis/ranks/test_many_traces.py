"""Traces of many ranks: imported, analysed and compared wherever the engine puts them; lost workers."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import training_trace
from neuron_profile.analysis.analyses import run_analysis
from neuron_profile.analysis.comparison.difference import compare
from neuron_profile.analysis.ranks.analyses import ADVICE, analyse_ranks
from neuron_profile.analysis.ranks.differences import compare_ranks
from neuron_profile.analysis.ranks.engine import summarise_job
from neuron_profile.analysis.ranks.imports import RankImport, import_ranks
from neuron_profile.analysis.ranks.spread import Engine
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import open_profile

HERE = Engine()
NAMES = ("idle", "kernels", "queue", "critical-path", "communication", ADVICE)


def write_traces(folder, ranks, events=2_000):
    """Different traces, and where their profiles shall be."""
    imports = []
    for number in range(ranks):
        training_trace.write(folder / f"rank{number}.json", events, seed=number)
        imports.append(RankImport(str(folder / f"rank{number}.json"), str(folder / f"rank{number}.nprof")))
    return imports


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """Paths of the profiles of two ranks."""
    imports = write_traces(tmp_path_factory.mktemp("job"), 2)
    import_ranks(imports, HERE)
    return [each.profile for each in imports]


def test_each_trace_becomes_the_profile_that_an_import_makes(tmp_path):
    (work,) = write_traces(tmp_path, 1)
    (report,) = import_ranks([work], HERE)
    alone = import_traces([work.trace], tmp_path / "alone.nprof")
    assert replace(alone, path=Path(work.profile)) == report
    with open_profile(work.profile) as made, open_profile(alone.path) as expected:
        assert made.arrow("TraceSpan").equals(expected.arrow("TraceSpan"))


def test_nothing_is_left_beside_the_profiles(tmp_path):
    imports = write_traces(tmp_path, 1)
    for force in (False, True):
        import_ranks(imports, HERE, force=force)
    assert sorted(os.listdir(tmp_path)) == ["rank0.json", "rank0.nprof"]


def test_profiles_are_replaced_only_where_that_was_asked_for(tmp_path):
    (work,) = write_traces(tmp_path, 1)
    Path(work.profile).mkdir()
    (Path(work.profile) / "notes").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        import_ranks([work], HERE)
    with pytest.raises(NeuronToolsError):
        import_ranks([work], HERE, force=True)
    assert (Path(work.profile) / "notes").read_text() == "mine"
    with pytest.raises(UsageError, match="same profile"):
        import_ranks([work, work], HERE)


def test_analyses_of_a_rank_are_those_of_its_profile(ranks):
    first, second = analyse_ranks(ranks, NAMES, HERE)
    assert (first.path, second.path) == tuple(ranks)
    assert first.results != second.results
    with open_profile(ranks[1]) as profile:
        for name in NAMES[:-1]:
            assert second.results[name] == run_analysis(profile, name)
    assert second.results[ADVICE][0].rule == "device_traces"


def test_what_a_rank_lacks_is_told(ranks):
    (found,) = analyse_ranks(ranks[:1], ["memory"], HERE)
    assert found.results == {}
    assert "lacks the data" in found.lacks["memory"]
    with pytest.raises(UsageError, match="no analysis 'mood'"):
        analyse_ranks(ranks, ["mood"], HERE)


@pytest.mark.slow
def test_processes_analyse_as_one_process_does(ranks):
    assert analyse_ranks(ranks, NAMES, Engine("processes")) == analyse_ranks(ranks, NAMES, HERE)


def test_ranks_of_two_runs_are_compared_in_pairs(ranks):
    first, second = compare_ranks(ranks, ranks[::-1], HERE)
    with open_profile(ranks[0]) as base, open_profile(ranks[1]) as new:
        expected = compare(base, new)
    assert (first.base, first.new) == (ranks[0], ranks[1])
    assert (first.base_device_ns, first.new_device_ns) == (expected.base_device_ns, expected.new_device_ns)
    assert first.deltas == expected.deltas
    assert first.delta_ns == -second.delta_ns != 0
    with pytest.raises(UsageError, match=r"not the same ranks \(1 and 2\)"):
        compare_ranks(ranks[:1], ranks, HERE)


class Killer:
    """Kills one worker of a cluster when the first rank is done."""

    def __init__(self, client):
        self.client = client
        self.killed = 0

    def __call__(self, done, count):
        if not self.killed:
            self.killed = next(iter(self.client.run(os.getpid).values()))
            os.kill(self.killed, signal.SIGKILL)


WORK_ON_RANKS = {
    "import": lambda imports, paths, engine, killer: import_ranks(
        imports, engine, force=True, progress=killer
    ),
    "analysis": lambda imports, paths, engine, killer: analyse_ranks(paths, NAMES, engine, killer),
    "comparison": lambda imports, paths, engine, killer: compare_ranks(paths, paths[::-1], engine, killer),
    "summary": lambda imports, paths, engine, killer: summarise_job(
        paths, "dask", scheduler=engine.scheduler, progress=killer
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK_ON_RANKS.values(), ids=WORK_ON_RANKS)
def test_a_killed_worker_loses_nothing(work, tmp_path):
    distributed = pytest.importorskip("distributed")
    imports = write_traces(tmp_path, 4, 6_000)
    paths = [each.profile for each in imports]
    import_ranks(imports, HERE)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        engine, killer = Engine("dask", scheduler=cluster.scheduler_address), Killer(client)
        undisturbed, disturbed = work(imports, paths, engine, None), work(imports, paths, engine, killer)
        assert killer.killed
        assert disturbed == undisturbed
    assert not list(tmp_path.glob(".*.importing"))


def die(item):
    """As a rank that takes more memory than there is."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_rank_that_kills_every_worker_is_told():
    pytest.importorskip("distributed")
    from neuron_profile.analysis.ranks.spread import in_order, spread

    with pytest.raises(NeuronToolsError, match="4 Dask workers were lost"):
        in_order(spread(die, [0], Engine("dask")))
