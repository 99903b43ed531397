"""Costs beside the code, with the right numbers; they follow their lines when the file changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_tools import open_profile
from tests.vscode.conftest import OpenWindow, capture
from tests.vscode.quantities import nanoseconds, percent
from tests.vscode.window import Window

# How many strong colours the overview ruler has.
RULER_COLOURS = """
() => {
  const ruler = document.querySelector('.editor-instance canvas.decorationsOverviewRuler');
  const { data } = ruler.getContext('2d').getImageData(0, 0, ruler.width, ruler.height);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue] = data.subarray(at, at + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 70) colours.add(`${red} ${green} ${blue}`);
  }
  return colours.size;
}
"""


def line_times(project: Path) -> list[float]:
    """Device time of each line with any, by line."""
    with open_profile(project / "train.nprof") as profile:
        lines = find_hotspots(profile).lines
    return [row.cost.device_ns for row in sorted(lines, key=lambda row: row.place.line)]


@pytest.fixture(scope="module")
def shared(open_shared_window: OpenWindow, project: Path) -> Window:
    """The script, with costs."""
    window = open_shared_window(project)
    window.open_profile("train.nprof")
    window.open_file("train.py")
    window.until(window.end_texts)
    return window


@pytest.fixture
def editor(shared: Window) -> Window:
    """The same, with the cursor at the top and nothing open above it."""
    shared.page.keyboard.press("Escape")
    shared.open_file("train.py")
    shared.until(shared.end_texts)
    shared.go_to_line(1)
    return shared


def test_each_line_shows_its_time_and_share(editor: Window, project: Path) -> None:
    expected = line_times(project)
    shown = editor.until(lambda: len(editor.end_texts()) == len(expected) and editor.end_texts())
    assert [nanoseconds(text) for text in shown] == pytest.approx(expected, rel=0.006)
    assert [percent(text) for text in shown] == pytest.approx(
        [100 * ns / sum(expected) for ns in expected], abs=0.06
    )
    assert all("instr" in text for text in shown)
    assert editor.page.locator(".glyph-margin-widgets .cgmr, .margin-view-overlays .cgmr").count() > 0
    assert editor.page.evaluate(RULER_COLOURS) > 1


def test_functions_show_time_share_and_mfu(editor: Window, project: Path) -> None:
    forward, train = editor.until(lambda: len(editor.lenses()) == 2 and editor.lenses())
    total = sum(line_times(project))
    assert nanoseconds(train) == pytest.approx(total, rel=0.006)
    assert "100.0 %" in train
    assert "MFU" in forward
    assert nanoseconds(forward) < nanoseconds(train)


def test_findings_are_diagnostics_with_actions(editor: Window, project: Path) -> None:
    with open_profile(project / "train.nprof") as profile:
        placed = [finding for finding in advise(profile) if finding.place.file.endswith("train.py")]
    squiggles = editor.page.locator(".squiggly-warning, .squiggly-info")
    editor.until(lambda: squiggles.count() >= len({finding.place.line for finding in placed}))
    editor.go_to_line(placed[0].place.line)
    editor.quick_fixes().get_by_text("Show the evidence").first.wait_for()


@pytest.mark.thorough
def test_a_finding_shows_what_its_change_gives(open_window: OpenWindow, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nx = torch.randn(1024, 1024).to('neuron')\nfor _ in range(4):\n    x @ x\n"
    )
    capture(tmp_path, "train.nprof")
    window = open_window(tmp_path)
    window.open_profile("train.nprof")
    window.open_file("train.py")
    window.until(window.page.locator(".squiggly-warning, .squiggly-info").count)
    window.go_to_line(4)
    window.quick_fixes().get_by_text(re.compile("Show what-if: dtype=bf16")).first.click()
    window.toast("saves")


def test_the_hover_has_a_table(editor: Window) -> None:
    hover = editor.rest_on("self.second(hidden)", "Device time of this line")
    assert "With calls" in hover.inner_text()
    assert "Tensor" in hover.inner_text()
    hover.get_by_text("Show spans").first.click()
    editor.painted()
    search = editor.timeline().locator("#timeline input").first
    editor.until(lambda: search.input_value().endswith("train.py:17-17"))


def test_the_hottest_lines_follow_each_other(editor: Window, project: Path) -> None:
    with open_profile(project / "train.nprof") as profile:
        ranked = [row.place.line for row in find_hotspots(profile).lines]
    for line in ranked[:3]:
        editor.command("Neuron: Next Hottest Line")
        editor.until(lambda line=line: editor.cursor_line() == line)


@pytest.mark.thorough
def test_costs_follow_lines_that_move(open_window, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "edited"
    folder.mkdir()
    (folder / "train.nprof").symlink_to(project / "train.nprof")
    text = (
        (project / "train.py")
        .read_text()
        .replace("        hidden = ", "        scale = 2\n        hidden = ")
    )
    (folder / "train.py").write_text(text)
    window = open_window(folder)
    window.open_profile("train.nprof")
    window.open_file("train.py")
    shown = window.until(lambda: len(window.end_texts()) == len(line_times(project)) and window.end_texts())
    assert [nanoseconds(one) for one in shown] == pytest.approx(line_times(project), rel=0.006)
    assert "It was line 17" in window.rest_on("self.second(hidden)", "It was line").inner_text()
    window.page.keyboard.press("Escape")
    window.page.locator(".codelens-decoration a", has_text="Changed since train.nprof").first.click()
    both = window.page.locator(".monaco-diff-editor")
    both.locator(".original .view-line", has_text="hidden").first.wait_for()
    both.locator(".modified .view-line", has_text="scale = 2").first.wait_for()
