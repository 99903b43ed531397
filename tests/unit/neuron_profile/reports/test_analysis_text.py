"""Analyses as a person reads them: every one says what its table tells."""

from __future__ import annotations

import io
from dataclasses import dataclass

from rich.console import Console

from neuron_profile.analysis.critical_path import CriticalPath, PathEntry
from neuron_profile.analysis.expected import ExpectedLine
from neuron_profile.analysis.host_activity import HostActivity
from neuron_profile.analysis.idle_reasons import EngineTime
from neuron_profile.analysis.job_step import JobStep, RankStep
from neuron_profile.analysis.memory import MemoryUse, OnChipUse
from neuron_profile.analysis.serving import Request
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.analysis_columns import LEADS
from neuron_profile.reports.analysis_text import print_analysis


def printed(result, limit=10):
    console = Console(file=io.StringIO(), width=240)
    print_analysis(console, result, limit)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_line_is_told_as_a_place():
    lines = printed((ExpectedLine(SourceLine("train.py", 7), 20.0, 10.0, 30.0),))
    assert lines[-1].split() == ["train.py:7", "20", "ns", "10", "ns", "30", "ns"]


def test_what_the_host_did_is_told_in_words_and_libraries_are_short():
    inside = "/opt/python/site-packages/torch/nn/functional.py:2615"
    lines = printed((HostActivity("data_loading", "", "train.py", 7, "load", inside, "", 20),))
    assert lines[-1].split() == [
        "train.py:7", "data", "loading", "load", "torch/nn/functional.py:2615", "20", "ns",
    ]  # fmt: skip


def test_parts_of_an_engine_are_shares_of_its_time():
    lines = printed((EngineTime(0, 0, "Tensor", 1000, 500, 250, 100, 50, 0, 100),))
    assert lines[0] == LEADS["EngineTime"]
    assert lines[2].split() == [
        "Engine",
        "Total",
        "Busy",
        "Waits:",
        "DMA",
        "engine",
        "issue",
        "Done",
        "early",
        "host",
    ]
    assert lines[4].split() == [
        "Tensor", "1.00", "µs", "50.0", "%", "25.0", "%", "10.0", "%", "5.0", "%", "0.0", "%", "10.0", "%",
    ]  # fmt: skip


def test_a_fraction_is_told_in_percent_and_tokens_by_the_second():
    rank = RankStep(0, 6_000, 0, 3_000, 1_000, 0, 500, 10, 0.344, 7)
    lines = printed(JobStep(7_500, 1_024, 1_117_095.4, 0.344, 7, 24, "computing", (rank,)))
    assert {"MFU: 34.4 %", "Tokens/s: 1,117,095"} <= set(lines)
    assert lines[-1].split()[-4:] == ["34.4", "%", "7", "B"]


def test_process_and_core_are_told_where_there_are_several():
    cores = [EngineTime(0, core, "Tensor", 10, 10, 0, 0, 0, 0, 0) for core in (0, 1)]
    assert printed(tuple(cores))[2].split()[:2] == ["Core", "Engine"]


def test_a_path_tells_places_and_parts_of_the_whole():
    path = CriticalPath(400.0, (PathEntry("Tensor", "aten::mm", "train.py", 7, 300.0, 3),))
    lines = printed(path)
    assert lines[0] == "Total: 400 ns"
    assert lines[-1].split() == ["Tensor", "aten::mm", "train.py:7", "300", "ns", "3", "75.0", "%"]


def test_rows_over_the_limit_are_counted():
    rows = tuple(PathEntry("host", str(number), "", 0, 1.0, 1) for number in range(5))
    assert printed(CriticalPath(5.0, rows), limit=2)[-1] == "... and 3 more (--limit)"


def test_empty_lists_are_left_out():
    lines = printed(MemoryUse((), (), (), (OnChipUse("SBUF", 0, 0, 0.5, 0.25, 2_000),), (), ()))
    assert [line for line in lines if line in ("On chip", "Spills", "Tensors")] == ["On chip"]
    assert lines[-1].split() == ["SBUF", "50.0", "%", "25.0", "%", "2.00", "µs"]


@dataclass(frozen=True)
class Odd:
    found: bool
    missing: str | None
    size_bytes: int


def test_what_is_not_there_is_left_empty():
    assert printed((Odd(True, None, 2000),))[-1].split() == ["yes", "2.00", "kB"]


def test_large_rates_are_told_in_whole_numbers():
    request = Request("a", 0, 3, None, None, None, 10, 20, 10.0, 20302.4)
    assert printed((request,))[-1].split()[-1] == "20,302"
