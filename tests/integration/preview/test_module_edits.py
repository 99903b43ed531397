"""What an edit of a PyTorch module is predicted to change, against a fresh capture of the edited file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_explorer.api.preview_process import PreviewProcess
from neuron_explorer.api.previews import Previews
from neuron_explorer.api.source_costs import read_source_costs
from neuron_explorer.library import ProfileLibrary

PROGRAM = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.first(x)
        h = torch.relu(h)
        return x + self.second(h)


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


model = Net(256, 2).bfloat16().to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(512, 256).bfloat16().to("neuron")
for _ in range(3):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SCRIPT = 1 + PROGRAM[: PROGRAM.index("model = Net")].count("\n")
"""The first line that is no part of a module."""
EDITS = (
    ("h = torch.relu(h)", "h = torch.tanh(torch.relu(h))"),
    ("return x + self.second(h)", "return self.second(h)"),
    ("h = self.first(x)", "h = self.first(x.float().bfloat16())"),
)


def capture(file: Path, text: str, profile: str) -> Path:
    file.write_text(text)
    path = file.parent / profile
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
    command += ["-o", str(path), "--", sys.executable, file.name]
    subprocess.run(command, cwd=file.parent, check=True, capture_output=True)
    return path


def line_times(profile: Path, file: Path) -> dict[int, float]:
    with neuron_tools.open_profile(profile) as opened:
        costs = read_source_costs(opened)
    return {line: work.device_ns for line, work in costs.files[str(file)].own_code.items()}


def timed(lines: dict[int, float]) -> dict[int, float]:
    """The lines that took any time."""
    return {line: time for line, time in lines.items() if time}


@pytest.mark.slow
def test_edits_of_a_module_are_predicted_as_fresh_captures_show_them(tmp_path: Path) -> None:
    file, process = tmp_path / "net.py", PreviewProcess()
    base = capture(file, PROGRAM, "base.nprof")
    with ProfileLibrary() as library, neuron_tools.open_profile(base) as profile:
        previews = Previews(library, process)
        for number, (old, new) in enumerate(EDITS):
            text = PROGRAM.replace(old, new)
            answer = previews.preview(profile, str(file), text)
            assert answer["problems"] == []
            assert answer["kernels"] == ["Net"]
            fresh = line_times(capture(file, text, f"edit{number}.nprof"), file)
            predicted = timed({row["line"]: row["own_code"]["device_ns"] for row in answer["after"]["lines"]})
            inside = {line: time for line, time in timed(fresh).items() if line < SCRIPT}
            assert predicted == pytest.approx(inside, rel=0.05)
        wrong = PROGRAM.replace("self.second(h)", "self.second(x)")
        (problem,) = previews.preview(profile, str(file), wrong)["problems"]
    process.close()
    assert problem["line"] == 1 + PROGRAM[: PROGRAM.index("return x + ")].count("\n")
    assert "shapes cannot be multiplied" in problem["message"]
