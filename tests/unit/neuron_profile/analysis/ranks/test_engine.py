"""Every engine gives the same job, whether ranks share a profile or not."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.ranks.engine import summarise_job
from neuron_profile.analysis.ranks.partial import find_ranks, measure_rank
from neuron_tools.errors import UsageError
from tests.unit.neuron_profile.analysis.traces.tiny_trace import open_trace


@pytest.fixture
def paths(make_profile, tmp_path):
    """A capture and an imported trace, as two ranks."""
    with open_trace(tmp_path) as profile:
        return [str(make_profile()), str(profile.path)]


def test_a_capture_and_a_trace_are_ranks_of_one_job(paths):
    capture, trace = summarise_job(paths).ranks
    assert (capture.device_ns, capture.idle_ns, capture.peak_hbm_bytes) == (200, 100, 5000)
    assert (trace.device_ns, trace.idle_ns) == (250_000, 40_000)


def test_operations_of_a_rank_add_up_to_its_device_time(paths):
    partial = measure_rank(find_ranks(paths)[0])
    assert sum(time for time, _ in partial.operations.values()) == 150  # 50 ns belong to no operation


def test_processes_give_what_one_process_gives(paths):
    assert summarise_job(paths, "processes") == summarise_job(paths)


def test_progress_counts_the_ranks(paths):
    seen: list[tuple[int, int]] = []
    summarise_job(paths, progress=lambda done, count: seen.append((done, count)))
    assert seen == [(1, 2), (2, 2)]


def test_a_url_is_read_like_a_folder(paths):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.put(paths[0], "/job/rank0.nprof", recursive=True)
    assert summarise_job(["memory://job/rank0.nprof"]).ranks == summarise_job(paths[:1]).ranks


@pytest.mark.parametrize(
    ("engine", "scheduler", "text"),
    [("spark", None, "no engine 'spark'"), ("local", "tcp://x:1", "goes with --engine dask")],
)
def test_engines_that_make_no_sense_are_refused(paths, engine, scheduler, text):
    with pytest.raises(UsageError, match=text):
        summarise_job(paths, engine, scheduler=scheduler)


@pytest.mark.slow
def test_dask_gives_what_one_process_gives(paths):
    assert summarise_job(paths, "dask") == summarise_job(paths)


def test_ranks_that_did_not_run_themselves_are_left_out(make_profile, tiny_tables):
    processes = {
        "process_idx": [0, 1, 2], "process_id": [77, 78, 79], "command": ["train.py"] * 3, "rank": [0, 1, 2],
        "start_unix_ns": [0] * 3, "replica_of_rank": [None, 0, 0],
    }  # fmt: skip
    keys = find_ranks([str(make_profile(tables={**tiny_tables, "ProcessInfo": processes}))])
    assert [(key.rank, key.command) for key in keys] == [(0, "train.py")]
