"""The debugger stops where a slow span starts: at the line, in the execution that was slow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.vscode.conftest import OpenWindow
from tests.vscode.window import Window

PROGRAM = '''\
"""Steps of which one is slow."""

import torch

weight = torch.ones(256, 256).to("neuron")
for step, rows in enumerate((64, 64, 4096, 64)):
    x = torch.ones(rows, 256).to("neuron")
    y = torch.relu(x @ weight)
    print(step, y.sum().item())
'''
SLOW_LINE = 8
SLOW_MATMUL = 0.73
"""Where the long product stands in the width of the timeline: the captures' clock is fixed."""
pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program and its profile."""
    pytest.importorskip("debugpy")
    folder = tmp_path_factory.mktemp("debugged").resolve()
    (folder / "steps.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
    command += ["-o", "steps.nprof", "--", "python", "steps.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def editor(open_window: OpenWindow, folder: Path) -> Window:
    """The program with its costs."""
    window = open_window(folder)
    window.open_profile("steps.nprof")
    window.open_file("steps.py")
    window.until(window.end_texts)
    return window


def stopped_at(window: Window) -> str:
    """The text of the line at which the debugger has stopped; "" while it has not."""
    mark = window.page.locator(".debug-top-stack-frame-line")
    if not mark.count():
        return ""
    top = str(mark.first.evaluate("mark => mark.parentElement.style.top"))
    lines = window.page.locator(".editor-instance .view-line").all()
    texts = (line.inner_text() for line in lines if line.evaluate("line => line.style.top") == top)
    return next(texts, "").replace("\u00a0", " ")


def variable(window: Window, name: str) -> str:
    """A variable of the stopped program, as the view Variables shows it."""
    rows = window.page.locator(".debug-variables .monaco-list-row")
    row = rows.filter(has_text=f"{name} =").first

    def is_shown() -> bool:
        if not row.count():
            rows.filter(has_text="Locals").first.click()
        return bool(row.count())

    window.insist(is_shown, row.count)
    return str(row.inner_text())


def test_a_line_is_stopped_at_in_its_slowest_execution(editor: Window) -> None:
    editor.go_to_line(SLOW_LINE)
    editor.command("Neuron: Debug the Slowest Execution of the Line")
    editor.until(lambda: "torch.relu(x @ weight)" in stopped_at(editor))
    assert variable(editor, "rows").split() == ["rows", "=", "4096"]
    assert variable(editor, "step").split() == ["step", "=", "2"]
    editor.command("Debug: Stop")


def test_a_span_is_stopped_at_where_it_was_launched(open_window: OpenWindow, folder: Path) -> None:
    window = open_window(folder)
    window.open_profile("steps.nprof")
    window.click_span("Framework operations", SLOW_MATMUL)
    window.command("Neuron: Debug Where the Selected Span Starts")
    window.until(lambda: "torch.relu(x @ weight)" in stopped_at(window))
    assert variable(window, "rows").split() == ["rows", "=", "4096"]
    window.command("Debug: Stop")
