"""A capture from the editor, end to end: task, progress, profile, costs at the lines."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neuron_tools import open_profile
from tests.vscode.conftest import TRAIN, OpenWindow, StartVSCode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a script, and settings that make captures repeatable."""
    found = tmp_path / "work"
    (found / ".vscode").mkdir(parents=True)
    (found / "train.py").write_text(TRAIN)
    (found / ".vscode/settings.json").write_text(
        json.dumps({"neuron.target": "trn1", "neuron.capture.arguments": ["--host-clock", "fixed"]})
    )
    return found


def test_the_current_file_is_captured_with_arguments_and_shown(open_window, folder: Path) -> None:
    window = open_window(folder)
    window.open_file("train.py")
    window.command("Neuron: Capture with Arguments...", asks="Arguments of the script")
    window.answer("Arguments of the script", "1")
    window.painted("train.nprof")
    profile = folder / "train.nprof/profile.json"
    with open_profile(profile.parent) as opened:
        assert opened.metadata["target"] == "trn1"
        assert opened.metadata["host_clock"] == "fixed"
        steps = opened.query("SELECT count(*) FROM HostSpan WHERE kind = 'optimizer' AND name LIKE '%step'")
    assert steps.column(0)[0].as_py() >= 1
    assert window.until(window.end_texts)
    window.until(lambda: len(window.lenses()) == 2)


@pytest.mark.thorough
def test_a_script_that_fails_leaves_its_problem_at_its_line(open_window, folder: Path) -> None:
    (folder / "train.py").write_text("import torch\n\nx = torch.ones(3, device='neuron')\nx.nonsense()\n")
    window = open_window(folder)
    window.open_file("train.py")
    window.command("Neuron: Capture Current File")
    window.page.locator(".squiggly-error").first.wait_for(state="attached")


@pytest.mark.thorough
def test_devices_are_live(
    open_window: OpenWindow, start_vs_code: StartVSCode, folder: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "sysfs"
    loop = "import torch\nx = torch.ones(256, 256, device='neuron')\nprint('up', flush=True)\n"
    loop += "while True:\n    (x @ x).sum().item()\n"
    environment = {**os.environ, "NEURON_SYSFS_ROOT": str(tree)}
    (folder / "loop.py").write_text(loop)
    program = subprocess.Popen(
        [sys.executable, "-m", "neuron_tools", "loop.py"],
        cwd=folder, env=environment, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        server = start_vs_code({"neuron.python": sys.executable}, {"NEURON_SYSFS_ROOT": str(tree)})
        window = open_window(folder, server)
        window.command("Neuron: Focus on Devices View")
        rows = window.page.locator(".monaco-list-row")
        rows.filter(has_text="Device 0").first.wait_for()
        rows.filter(has_text="loop.py").first.wait_for()
        rows.filter(has_text="NeuronCore 0").first.wait_for()
        assert "%" in rows.filter(has_text="NeuronCore 0").first.inner_text()
        program.kill()
        program.wait()
        rows.filter(has_text="loop.py").first.wait_for(state="detached")
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
        shutil.rmtree(tree, ignore_errors=True)
