"""Captures as tasks of tasks.json, with the problems of the script at its lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neuron_tools import open_profile
from tests.vscode.conftest import TRAIN, OpenWindow
from tests.vscode.window import Window

pytestmark = pytest.mark.thorough
FAILS = "import torch\n\nx = torch.ones(3, device='neuron')\nx.nonsense()\n"
MATCHERS = ["$neuron-profile", "$neuron-profile-marked"]


def task(label: str, script: str, **more: Any) -> dict[str, Any]:
    """A task of tasks.json."""
    found = {"type": "neuron-profile", "label": label, "script": f"${{workspaceFolder}}/{script}"}
    return {**found, "problemMatcher": MATCHERS, **more}


@pytest.fixture
def window(open_window: OpenWindow, tmp_path: Path) -> Window:
    """A window on a folder with two tasks, one of which fails."""
    (tmp_path / ".vscode").mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "fails.py").write_text(FAILS)
    tasks = [
        task("profile training", "train.py", args=["1"], target="trn1", output="made.nprof"),
        task("profile a failure", "fails.py"),
    ]
    (tmp_path / ".vscode/tasks.json").write_text(json.dumps({"version": "2.0.0", "tasks": tasks}))
    return open_window(tmp_path)


def run_task(window: Window, label: str) -> None:
    """Run a task as a user does."""
    window.command("Tasks: Run Task", asks="Select the task to run")
    window.choose("Select the task to run", label)


def test_a_task_captures_as_it_says(window: Window, tmp_path: Path) -> None:
    run_task(window, "profile training")
    made = tmp_path / "made.nprof/profile.json"
    window.until(lambda: made.exists() and json.loads(made.read_text()).get("complete"))
    with open_profile(made.parent) as profile:
        assert profile.metadata["target"] == "trn1"
        assert list(profile.metadata["command"])[-2:] == ["train.py", "1"]


def test_the_problem_of_a_task_stands_at_its_line(window: Window) -> None:
    window.open_file("fails.py")
    run_task(window, "profile a failure")
    window.page.locator(".squiggly-error").first.wait_for(state="attached")
    window.command("View: Focus Problems")
    problem = window.page.locator(".markers-panel .monaco-list-row", has_text="nonsense").first
    problem.wait_for()
    assert "Ln 4" in problem.inner_text()
