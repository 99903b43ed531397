"""What-if while typing: edited kernels are simulated; rules that they break stand at their lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.vscode.conftest import OpenWindow
from tests.vscode.window import Window

KERNEL = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(a):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in range(0, a.shape[0], 128):
        tile = nl.ndarray((128, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[row : row + 128])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=result[row : row + 128], src=tile)
    return result


if __name__ == "__main__":
    double(np.ones((512, 1024), np.float32))
"""
STORE = 14
pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kernel and its profile."""
    folder = tmp_path_factory.mktemp("kernels").resolve()
    (folder / "double.py").write_text(KERNEL)
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "--host-clock", "fixed"]
    command += ["-o", "double.nprof", "--", sys.executable, "double.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def editor(open_window: OpenWindow, kernels: Path) -> Window:
    """The kernel with its costs."""
    window = open_window(kernels)
    window.open_profile("double.nprof")
    window.open_file("double.py")
    window.until(window.end_texts)
    return window


def insert(window: Window, line: int, text: str) -> None:
    """Type a line above another one."""
    window.go_to_line(line)
    window.page.keyboard.press("Home")
    window.page.keyboard.type(f"{text}\n")


def prediction(window: Window) -> str:
    """The lens above the file that tells what its kernels would take; "" without one."""
    return next((text for text in window.lenses() if "As it reads now" in text), "")


def test_lines_show_what_an_edit_would_change_before_it_is_run(editor: Window) -> None:
    insert(editor, STORE, "nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)")
    lens = editor.until(lambda: prediction(editor))
    assert "double" in lens
    assert "+" in lens
    editor.until(lambda: any(text.startswith("new") for text in editor.end_texts()))
    editor.page.keyboard.press("Control+z")
    editor.until(lambda: not prediction(editor))


def test_rules_that_an_edit_breaks_stand_at_their_lines(editor: Window) -> None:
    insert(editor, STORE, "nl.ndarray((256, 8), dtype=nl.float32, buffer=nl.sbuf)")
    editor.until(editor.page.locator(".squiggly-error").count)
    hover = editor.rest_on("nl.ndarray((256", "256 partitions")
    assert "neuron what-if" in hover.inner_text()
