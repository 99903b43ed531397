"""The timeline in VS Code: it opens, paints, leads to lines, and shows the spans of lines."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuron_tools import open_profile
from tests.vscode.conftest import OpenWindow
from tests.vscode.quantities import nanoseconds
from tests.vscode.window import Window


@pytest.fixture(scope="module")
def shared(open_shared_window: OpenWindow, project: Path) -> Window:
    return open_shared_window(project)


@pytest.fixture
def timeline(shared: Window) -> Window:
    """The profile's timeline, and nothing else, in a window."""
    shared.page.keyboard.press("Escape")
    shared.command("View: Close All Editors")
    shared.page.locator(".tab").first.wait_for(state="hidden")
    shared.open_profile("train.nprof")
    return shared


def longest_operation(project: Path) -> tuple[float, int]:
    """Of the longest operation: its middle as a part of the profile's time, and its line."""
    with open_profile(project / "train.nprof") as profile:
        start, end = profile.time_range_ns()
        found = profile.query(
            "SELECT (start_ts + end_ts) / 2 AS middle, source_line FROM FrameworkInstruction "
            "ORDER BY end_ts - start_ts DESC LIMIT 1"
        ).to_pylist()[0]
    return (found["middle"] - start) / (end - start), found["source_line"]


def test_it_paints_and_a_click_on_a_span_opens_its_line(timeline: Window, project: Path) -> None:
    timeline.until(lambda: timeline.ink() > 1500)
    share, line = longest_operation(project)
    timeline.click_span("Framework operations", share)
    timeline.page.locator(".tab", has_text="train.py").wait_for()
    timeline.until(lambda: timeline.marked_line() == line)


def test_the_instructions_of_a_line_fill_the_view_and_its_spans_are_marked(timeline: Window) -> None:
    whole = in_sight(timeline)
    timeline.open_file("train.py")
    timeline.until(timeline.end_texts)
    timeline.go_to_line(16)
    timeline.page.keyboard.press("Control+Shift+G")
    timeline.painted()
    timeline.until(lambda: searched(timeline).endswith("train.py:16-16"))
    timeline.until(lambda: in_sight(timeline) < whole / 2)


def test_the_spans_of_the_cursors_line_are_marked(timeline: Window) -> None:
    timeline.open_file("train.py")
    timeline.command("View: Move Editor into Right Group")
    timeline.painted()
    timeline.go_to_line(17)
    timeline.until(lambda: searched(timeline).endswith("train.py:17-17"))
    timeline.go_to_line(1)
    timeline.until(lambda: searched(timeline) == "")


def searched(window: Window) -> str:
    """What the timeline looks for."""
    return str(window.timeline().locator("#timeline input").first.input_value())


def in_sight(window: Window) -> float:
    """How many ns the timeline shows, as its bar says."""
    return nanoseconds(window.timeline().locator("#timeline .nt-status").inner_text())


def kept_ns(window: Window) -> float:
    """How much time the view shows that is kept for the next time that the window is loaded; 0 for none."""
    kept = window.remembered("neuron.views") or [{"view": {"range": None}}]
    shown = kept[0]["view"]["range"]
    return shown["endNs"] - shown["startNs"] if shown else 0.0


@pytest.mark.thorough
def test_a_timeline_keeps_its_place_when_hidden_and_reloaded(timeline: Window) -> None:
    whole = in_sight(timeline)
    box = timeline.timeline().locator("#timeline canvas").last.bounding_box()
    timeline.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    timeline.page.keyboard.down("Control")
    timeline.page.mouse.wheel(0, -600)
    timeline.page.keyboard.up("Control")
    timeline.until(lambda: 0 < in_sight(timeline) < whole / 2)
    timeline.until(lambda: kept_ns(timeline) == pytest.approx(in_sight(timeline), rel=0.01))
    shown = in_sight(timeline)
    timeline.open_file("train.py")
    timeline.page.locator(".tab", has_text="train.nprof").first.click()
    timeline.painted()
    timeline.until(lambda: in_sight(timeline) == pytest.approx(shown, rel=0.01))
    timeline.reload()
    timeline.painted()
    timeline.until(lambda: in_sight(timeline) == pytest.approx(shown, rel=0.01))


@pytest.mark.thorough
def test_several_profiles_stand_side_by_side(open_window: OpenWindow, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    for name in ("one.nprof", "two.nprof"):
        shutil.copytree(project / "train.nprof", folder / name)
    window = open_window(folder)
    window.open_profile("one.nprof")
    window.open_profile("two.nprof")
    window.command("View: Move Editor into Right Group")
    window.painted("one.nprof")
    window.painted("two.nprof")
    window.until(lambda: min(window.ink("one.nprof"), window.ink("two.nprof")) > 1000)


@pytest.mark.thorough
def test_a_profile_dragged_into_the_editor_opens_its_timeline(open_window: OpenWindow, project: Path) -> None:
    window = open_window(project)
    window.open_file("train.py")
    tree = window.page.locator(".explorer-folders-view")
    tree.locator(".monaco-list-row", has_text="train.nprof").first.click()
    rows = tree.locator(".monaco-list-row")
    manifest = rows.filter(has_text="profile.json").first
    manifest.wait_for()
    assert not rows.filter(has_text="StackFrame").count()  # tables are left out of the tree

    def grasp() -> None:
        window.page.mouse.up()  # of an attempt in vain
        manifest.hover()
        window.page.mouse.down()

    _drag(window, grasp, window.page.locator(".editor-instance").first)
    window.painted("train.nprof")


def _drag(window: Window, grasp: Callable[[], None], target: Any) -> None:
    """Drag what the mouse grasps into the editors; let it go once the workbench shows where it would open."""
    mouse, box = window.page.mouse, target.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    overlay = window.page.locator("#monaco-workbench-editor-drop-overlay")

    def is_shown() -> bool:
        mouse.move(x, y)
        mouse.move(x + 5, y + 5)
        return bool(overlay.count())

    window.insist(grasp, is_shown)
    mouse.up()
