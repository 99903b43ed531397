"""The timeline in VS Code: it opens, paints, leads to lines, and shows the spans of lines."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from neuron_tools import open_profile
from tests.vscode.conftest import OpenWindow
from tests.vscode.window import Window


@pytest.fixture(scope="module")
def shared(open_shared_window: OpenWindow, project: Path) -> Window:
    return open_shared_window(project)


@pytest.fixture
def timeline(shared: Window) -> Window:
    """The profile's timeline, and nothing else, in a window."""
    shared.page.keyboard.press("Escape")
    shared.command("View: Close All Editors")
    shared.open_profile("train.nprof")
    return shared


def span_at(window: Window, x: float, y: float) -> None:
    """Click into the plot of the timeline."""
    box = window.timeline().locator("#timeline").bounding_box()
    window.page.mouse.click(box["x"] + x, box["y"] + y)


def click_span(window: Window, track: str, share: float) -> None:
    """Click at a part of the width of a track's first row."""
    plot = window.timeline().locator("#timeline canvas").last.bounding_box()
    frame = window.timeline().locator("#timeline").bounding_box()
    span_at(window, plot["x"] - frame["x"] + share * plot["width"], track_top(window, track))


def track_top(window: Window, name: str) -> float:
    """Middle of the first row of a track, from the top of the timeline."""
    frame = window.timeline().locator("#timeline").bounding_box()
    header = window.timeline().get_by_text(name, exact=True).first.bounding_box()
    return header["y"] + header["height"] / 2 - frame["y"]


def test_a_click_on_a_span_opens_its_line(timeline: Window, project: Path) -> None:
    with open_profile(project / "train.nprof") as profile:
        start, end = profile.time_range_ns()
        longest = profile.query(
            "SELECT start_ts, end_ts, source_line FROM FrameworkInstruction "
            "ORDER BY end_ts - start_ts DESC LIMIT 1"
        ).to_pylist()[0]
    frame = timeline.timeline().locator("#timeline")
    plot = timeline.timeline().locator("#timeline canvas").last.bounding_box()
    left = plot["x"] - frame.bounding_box()["x"]
    middle = (longest["start_ts"] + longest["end_ts"]) / 2
    x = left + plot["width"] * (middle - start) / (end - start)
    span_at(timeline, x, track_top(timeline, "Framework operations"))
    timeline.page.locator(".tab", has_text="train.py").wait_for(timeout=30_000)
    timeline.until(lambda: timeline.marked_line() == longest["source_line"])


def test_the_spans_of_a_line_are_marked_and_instructions_fill_the_view(timeline: Window) -> None:
    whole = timeline.timeline().locator("#timeline").screenshot()
    timeline.open_file("train.py")
    timeline.until(timeline.end_texts)
    timeline.go_to_line(16)
    timeline.page.keyboard.press("Control+Shift+G")
    timeline.painted()
    field = timeline.timeline().locator("#timeline input").first
    timeline.until(lambda: field.input_value().endswith("train.py:16-16"))
    timeline.until(lambda: timeline.timeline().locator("#timeline").screenshot() != whole)


def in_sight(window: Window) -> str:
    """How much time the timeline shows, as its bar says."""
    return str(window.timeline().get_by_text(re.compile("s in sight$")).inner_text())


@pytest.mark.unsteady
def test_a_timeline_keeps_its_place_when_hidden_and_reloaded(timeline: Window) -> None:
    whole = in_sight(timeline)
    box = timeline.timeline().locator("#timeline canvas").last.bounding_box()
    timeline.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)

    def zoomed_in() -> bool:
        timeline.page.keyboard.down("Control")
        timeline.page.mouse.wheel(0, -600)
        timeline.page.keyboard.up("Control")
        timeline.page.wait_for_timeout(1000)
        return in_sight(timeline) != whole

    timeline.until(zoomed_in)
    zoomed = in_sight(timeline)
    timeline.open_file("train.py")
    timeline.page.locator(".tab", has_text="train.nprof").first.click()
    timeline.painted()
    assert in_sight(timeline) == zoomed
    timeline.page.wait_for_timeout(5000)  # VS Code writes what a page remembers a while later
    timeline.page.reload()
    timeline.painted()
    assert in_sight(timeline) == zoomed


@pytest.mark.unsteady
def test_several_profiles_stand_side_by_side(open_window, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    for name in ("one.nprof", "two.nprof"):
        shutil.copytree(project / "train.nprof", folder / name)
    window = open_window(folder)
    window.open_profile("one.nprof")
    window.command("View: Split Editor")
    window.open_profile("two.nprof")
    window.until(lambda: window.page.locator("iframe.webview.ready").count() >= 2)
    names = window.page.locator(".tab .label-name").all_inner_texts()
    assert {"one.nprof", "two.nprof"} <= set(names)
