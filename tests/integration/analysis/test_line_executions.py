"""Executions of lines that a capture shows, against those that the program had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.line_executions import NoLineError, stop_at_line, stop_at_span
from neuron_profile.analysis.source_frames import SourceLine

PROGRAM = """import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.first(x))  # block: 12 of 4 * 3, slow 7

class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)  # each block
        return self.head(x)  # head

def scale(x):
    return x * 2 * 3  # scale

def double_often(x):
    for _ in range(3):
        x = x * 2  # doubled
    return x

model = Net(256, 3).to("neuron")  # made
for rows in (64, 64, 2048, 64):
    x = torch.randn(rows, 256).to("neuron")  # copied
    y = model(x)  # model
    y = scale(y)  # scaled
    z = double_often(  # outer call
        scale(y),  # inner call
    )
    loss = (y * y).sum() + (z * z).sum()  # loss
    loss.backward()  # backward
"""
SLOWEST = {
    "each block": (7, 12),
    "block:": (7, 12),
    "head": (3, 4),
    "scale": (5, 8),
    "doubled": (7, 12),
    "made": (1, 1),
    "copied": (4, 4),  # behind the slow backward pass, for which it waits
    "model": (3, 4),
    "scaled": (3, 4),
    "outer call": (3, 4),
    "inner call": (3, 4),
    "loss": (3, 4),
}
"""By the comment of each line: which of its executions is the slowest, and how many there are."""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's folder, with its profile."""
    folder = tmp_path_factory.mktemp("executions")
    (folder / "steps.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
    command += ["-o", "steps.nprof", "--", sys.executable, "steps.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


def line_of(comment: str) -> int:
    lines = PROGRAM.splitlines()
    return 1 + next(number for number, line in enumerate(lines) if f"# {comment}" in line)


@pytest.mark.slow
def test_the_slowest_execution_of_each_line_is_known(captured: Path) -> None:
    with neuron_tools.open_profile(captured / "steps.nprof") as profile:
        for comment, expected in SLOWEST.items():
            stop = stop_at_line(profile, SourceLine(str(captured / "steps.py"), line_of(comment)))
            assert (stop.number, stop.executions) == expected, comment
            assert stop.hit == (2 * stop.number - 1 if comment == "outer call" else stop.number)
            assert stop.cost_ns >= stop.typical_ns
        nowhere = stop_at_line(profile, SourceLine(str(captured / "steps.py"), 1))
    assert (nowhere.hit, nowhere.executions) == (0, 0)


@pytest.mark.slow
def test_a_backward_operation_stops_where_backward_was_called(captured: Path) -> None:
    with neuron_tools.open_profile(captured / "steps.nprof") as profile:
        rows = profile.query("SELECT * FROM FrameworkInstruction ORDER BY start_ts").to_pylist()
        backward = [row for row in rows if row["is_backward"]]
        forward = [row for row in rows if row["source_line"] == line_of("head") and not row["is_backward"]]
        last = stop_at_span(profile, "FrameworkInstruction", backward[-1])
        first = stop_at_span(profile, "FrameworkInstruction", forward[0])
        with pytest.raises(NoLineError):
            stop_at_span(profile, "HostSpan", {"start_ts": -5, "process_idx": 0})
    assert (last.place.line, last.number, last.executions) == (line_of("backward"), 4, 4)
    assert (first.place.line, first.number) == (line_of("head"), 1)
