"""A program with a fault is captured, mended in a copy, captured again and compared."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("libcst")

PROGRAM = """import torch

torch.manual_seed(0)
weights = torch.randn(128, 128).to("neuron")
x = torch.randn(128, 128).to("neuron")
sums = []
for _ in range(12):
    x = torch.tanh(x @ weights)
    sums.append(x.sum().item())
"""


def profile_command(folder, *arguments):
    command = [sys.executable, "-m", "neuron_profile.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_an_edit_is_measured_in_a_copy_and_written_when_it_holds(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    capture = ("capture", "-o", "run.nprof", "--host-clock", "fixed", "--", sys.executable, "train.py")
    captured = profile_command(tmp_path, *capture)
    assert captured.returncode == 0, captured.stderr
    findings = json.loads(profile_command(tmp_path, "advise", "run.nprof", "--json").stdout)["findings"]
    number = 1 + [finding["rule"] for finding in findings].index("host_synchronisation")
    done = profile_command(tmp_path, "fix", "run.nprof", "--finding", number, "--apply", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["values_equal"]
    assert answer["values_compared"] > 12
    assert answer["largest_difference"] < 1e-6
    assert 0 < answer["measured_ns"] == answer["before_ns"] - answer["after_ns"]
    assert "sums = torch.stack(sums).tolist() if sums else []" in script.read_text()
    assert profile_command(tmp_path, "fix", "run.nprof", "--finding", number, "--diff").returncode == 1
