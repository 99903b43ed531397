"""The example models train on the device as on the CPU, and their profiles hold what is promised."""

from __future__ import annotations

import linecache
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.verify import verify

EXAMPLES = Path(__file__).parents[3] / "examples"
MODELS = ("train_llama", "train_convnet", "train_lstm", "train_transformer")
QUICK = {("train_transformer", True)}
FEW_STEPS = ("--steps", "3")
SMALL = {"train_transformer": ("--layers", "2", "--width", "64", "--length", "32", "--batch", "2")}


@dataclass(frozen=True)
class Captured:
    """One captured training: what it printed, and its profile."""

    losses: list[float]
    compiled: bool
    profile: Profile


def losses(output: str) -> list[float]:
    return [float(line.split()[-1]) for line in output.splitlines() if line.strip()]


def command(model: str, device: str, *, compiled: bool) -> list[str]:
    options = [*FEW_STEPS, *SMALL.get(model, ()), *(["--compile"] if compiled else [])]
    return [sys.executable, str(EXAMPLES / f"{model}.py"), "--device", device, *options]


def run(arguments: list[str], folder: Path) -> str:
    answer = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def cases() -> list[Any]:
    """Each model, eager and compiled; all but one of them slow."""
    found = [(model, compiled) for model in MODELS for compiled in (False, True)]
    return [pytest.param(case, marks=[] if case in QUICK else [pytest.mark.slow]) for case in found]


@pytest.fixture(scope="module", params=cases(), ids=str)
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    model, compiled = request.param
    folder = tmp_path_factory.mktemp(model)
    capture = [
        sys.executable,
        "-m",
        "neuron_profile.cli",
        "capture",
        "-o",
        "run.nprof",
        "--host-clock",
        "fixed",
    ]
    printed = run([*capture, "--", *command(model, "neuron", compiled=compiled)], folder)
    on_cpu = run(command(model, "cpu", compiled=False), folder)
    assert losses(printed) == pytest.approx(losses(on_cpu), rel=1e-4)
    return Captured(losses(printed), compiled, neuron_tools.open_profile(folder / "run.nprof"))


def scalar(profile: Profile, query: str) -> float:
    (row,) = profile.query(query).to_pylist()
    return float(next(iter(row.values())) or 0)


def share(profile: Profile, condition: str) -> float:
    """Part of the device time, by framework operation, for which a condition on it holds."""
    return scalar(
        profile,
        f"SELECT sum(CASE WHEN {condition} THEN end_ts - start_ts ELSE 0 END) / sum(end_ts - start_ts)"
        " FROM FrameworkInstruction",
    )


def share_at_forward_lines(profile: Profile) -> float:
    """Part of the backward time at lines that have device time in the forward pass too."""
    return scalar(
        profile,
        "WITH forward AS"
        " (SELECT DISTINCT source_file, source_line FROM FrameworkInstruction WHERE NOT is_backward)"
        " SELECT sum(end_ts - start_ts) FILTER (WHERE (source_file, source_line) IN (FROM forward))"
        " / sum(end_ts - start_ts) FROM FrameworkInstruction WHERE is_backward",
    )


def calls_backward(file: str | None, line: int) -> bool:
    return file is None or "backward()" in linecache.getline(file, line)


def test_three_steps_are_three_finite_losses(captured: Captured) -> None:
    assert len(captured.losses) == 3
    assert all(math.isfinite(loss) for loss in captured.losses)


def test_device_time_has_a_source_line_and_a_module(captured: Captured) -> None:
    assert share(captured.profile, "source_file IS NOT NULL AND source_line > 0") >= 0.95
    assert share(captured.profile, "layer <> ''") >= 0.95


def test_backward_time_stands_at_lines_of_the_forward_pass(captured: Captured) -> None:
    rows = captured.profile.query(
        "SELECT source_file, source_line, sum(end_ts - start_ts)::BIGINT AS ns FROM FrameworkInstruction"
        " WHERE is_backward GROUP BY ALL"
    ).to_pylist()
    total = sum(row["ns"] for row in rows)
    at_the_call = sum(row["ns"] for row in rows if calls_backward(row["source_file"], row["source_line"]))
    assert total > 0
    assert at_the_call <= 0.05 * total
    assert share(captured.profile, "NOT is_backward OR layer <> ''") >= 0.95
    if not captured.compiled:  # compiled, a line of views or one fused into another has no forward row
        assert share_at_forward_lines(captured.profile) >= 0.95


def test_no_invariant_is_broken(captured: Captured) -> None:
    assert [str(breach) for breach in verify(captured.profile)] == []


def test_everything_was_compiled(captured: Captured) -> None:
    warnings = captured.profile.query("SELECT message FROM Warning").to_pylist()
    assert [row["message"] for row in warnings if "could not be compiled" in row["message"]] == []
