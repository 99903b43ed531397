"""Notebooks: they are captured whole or up to a cell, and their cells show what they cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.vscode.conftest import OpenWindow
from tests.vscode.quantities import percent
from tests.vscode.window import Window

CELLS = (
    "import torch\nfrom torch import nn",
    "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.first = nn.Linear(256, 1024)\n        self.second = nn.Linear(1024, 256)\n\n"
    "    def forward(self, x):\n        hidden = torch.relu(self.first(x))\n"
    "        return self.second(hidden)",
    '%pwd\nmodel = Model().to("neuron")\nx = torch.randn(64, 256).to("neuron")\n'
    "for _ in range(3):\n    loss = model(x).square().mean()\n    loss.backward()\nloss.item()",
)
NAME = "train.ipynb"
pytestmark = pytest.mark.thorough


def notebook() -> str:
    """A notebook with a title and the cells."""
    title = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Training"]}
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"cell{number}", "metadata": {}, "execution_count": None, "outputs": [],
         "source": text.splitlines(keepends=True)}
        for number, text in enumerate(CELLS)
    ]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": [title, *cells], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the notebook."""
    pytest.importorskip("IPython")
    (tmp_path / NAME).write_text(notebook())
    return tmp_path.resolve()


def capture(folder: Path, *command: str) -> None:
    capturing = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
    subprocess.run(
        [*capturing, "-o", "run.nprof", "--", *command], cwd=folder, check=True, capture_output=True
    )


def open_captured(window: Window) -> None:
    """Show the notebook with the costs of its capture, all cells in sight."""
    window.open_profile("run.nprof")
    window.open_file(NAME)
    window.until(lambda: sum(map(percent, window.end_texts())) >= 99.7)


def walk_to(window: Window, line: str, cell: str) -> None:
    """Go to the next hottest line, and wait until that is this one, in this cell."""
    window.command("Neuron: Next Hottest Line")
    status = window.page.locator(".statusbar")
    window.until(lambda: all(text in status.inner_text() for text in (f"Line {line}: ", f"Cell {cell} of 4")))


def test_cells_show_their_costs_and_are_walked_through(open_window: OpenWindow, folder: Path) -> None:
    capture(folder, NAME)
    window = open_window(folder)
    open_captured(window)
    assert len(window.end_texts()) == 4
    window.until(window.page.locator(".notebookOverlay .squiggly-warning").count)
    window.page.locator(".view-line", has_text="loss.backward()").first.click()
    walk_to(window, line="8", cell="3")  # behind the coldest comes the hottest, which is in another cell
    walk_to(window, line="9", cell="3")
    walk_to(window, line="5", cell="4")


def test_cells_of_a_kernel_are_known_by_their_text(open_window: OpenWindow, folder: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    capture(folder, "jupyter", "execute", NAME)
    open_captured(open_window(folder))


def test_a_cell_is_captured_with_what_it_needs(open_window: OpenWindow, folder: Path) -> None:
    window = open_window(folder)
    window.open_file(NAME)
    window.page.locator(".view-line", has_text="loss.backward()").first.click()
    window.command("Neuron: Capture This Cell")
    window.page.locator(".tab", has_text="train.nprof").first.wait_for()
    window.open_file(NAME)
    window.until(lambda: sum(map(percent, window.end_texts())) >= 70)  # the terminal covers the last cell
    command = json.loads((folder / "train.nprof/profile.json").read_text())["command"]
    assert command[command.index("--cell") + 1] == "3"
