"""Artifacts and their sessions, spelled as AWS's tools spell them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from neuron_profile.explorer_cli import explore
from neuron_tools.compat.neuronxcc import nki
from neuron_tools.compat.neuronxcc.nki import language as nl


def exponential(a):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(result, nl.exp(nl.load(a)))
    return result


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with kernel.neff and kernel.ntff."""
    monkeypatch.chdir(tmp_path)
    run = nki.baremetal(exponential, save_neff_name="kernel.neff", save_trace_name="kernel.ntff")
    run(np.ones((128, 64), np.float32))
    return tmp_path


def test_a_session_of_baremetal_is_viewed_in_one_line_of_json(session, command):
    answer = command("view", "-n", "kernel.neff", "-s", "kernel.ntff", "--output-format", "summary-json")
    assert answer.status == 0, answer.err
    (line,) = answer.out.splitlines()
    (metrics,) = json.loads(line).values()
    duration_ns = json.loads(Path("kernel.ntff").read_text())["duration_ns"]
    assert metrics["total_time"] == pytest.approx(duration_ns / 1e9, rel=0.01)


def test_each_profiled_execution_has_a_session_of_its_own(session, command):
    answer = command("capture", "-n", "kernel.neff", "-s", "run.ntff", "--num-exec", "20",
                     "--profile-nth-exec", "10")  # fmt: skip
    assert answer.status == 0, answer.err
    times = []
    for number in (10, 20):
        path = f"run_exec_{number}.ntff"
        viewed = command("view", "-n", "kernel.neff", "-s", path, "--output-format=summary-json")
        (metrics,) = json.loads(viewed.out).values()
        times.append(metrics["total_time"])
    assert times[0] == times[1] > 0
    assert sorted(path.name for path in session.glob("run*")) == ["run_exec_10.ntff", "run_exec_20.ntff"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Name a PROFILE"),
        (("-n", "kernel.neff"), "Name the session"),
        (("-s", "kernel.ntff"), "Name the artifact"),
        (("-n", "kernel.neff", "-s", "other.ntff"), "There is no session"),
    ],
)
def test_half_a_session_is_refused(session, command, arguments: tuple[str, ...], message: str):
    answer = command("view", *arguments, "--output-format", "summary-json")
    assert answer.status == 2
    assert message in answer.err


def test_neuron_explorer_takes_the_same_commands(session, capsys):
    assert explore(["capture", "-n", "kernel.neff", "-s", "run.ntff", "--enable-dge-notifs"]) == 0
    assert "changes nothing here: --enable-dge-notifs" in capsys.readouterr().err
    assert explore(["view", "-n", "kernel.neff", "-s", "run.ntff", "--output-format", "summary-json"]) == 0
    (metrics,) = json.loads(capsys.readouterr().out).values()
    assert metrics["total_time"] > 0
    assert explore(["recommend", "-n", "kernel.neff", "-s", "run.ntff", "--nki-source-root", "."]) == 0
    assert capsys.readouterr().out.startswith("# What to change")
    assert explore(["--show-profile-schema"]) == 0
    assert capsys.readouterr().out.startswith("openapi:")
    assert explore(["capture", "-n", "kernel.neff", "-r", "2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
