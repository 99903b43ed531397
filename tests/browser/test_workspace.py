"""The workspace in a real browser: panels that are arranged, and show what is chosen in one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuron_explorer.library import profile_id
from neuron_explorer.workspace.arrangements import ARRANGEMENTS
from tests.browser.axe import serious_breaches
from tests.browser.explorer import IS_SETTLED, Visit, served, visit
from tests.unit.neuron_profile.tiny_profile import TINY_TABLES

pytestmark = pytest.mark.browser

SHOWN = """() => [...document.querySelectorAll(".ws-dock .panel")].map((one) => one.dataset.panel).sort()"""
# Panels that reach beyond the dock or lie over each other, and texts of the frame that are cut.
MISPLACED = """() => {
    const dock = document.querySelector(".ws-dock").getBoundingClientRect();
    const boxes = [...document.querySelectorAll(".dv-groupview")].map((one) => one.getBoundingClientRect());
    const outside = boxes.filter((box) => box.left < dock.left - 1 || box.right > dock.right + 1
        || box.top < dock.top - 1 || box.bottom > dock.bottom + 1);
    const overlapping = boxes.filter((one, at) => boxes.some((other, place) => place > at
        && one.left < other.right - 1 && other.left < one.right - 1
        && one.top < other.bottom - 1 && other.top < one.bottom - 1));
    const { scrollWidth, scrollHeight } = document.documentElement;
    const wide = scrollWidth > innerWidth || scrollHeight > innerHeight;
    return outside.length + overlapping.length + Number(wide) + Number(dock.bottom > innerHeight);
}"""
# Controls of the timeline's bar that lie over each other, or reach out of it.
CROWDED = """() => {
    const bar = document.querySelector(".nt-bar");
    const seen = [...bar.querySelectorAll("button, select, input, .nt-status")]
        .map((one) => one.getBoundingClientRect()).filter((box) => box.width > 0);
    const overlapping = seen.filter((one, at) => seen.some((other, place) => place > at
        && one.left < other.right - 1 && other.left < one.right - 1));
    const end = bar.getBoundingClientRect().right + 1;
    return overlapping.length + seen.filter((box) => box.right > end).length;
}"""
# Keeps the page behind the timeline back until it is told to go on.
WITHHELD = """Object.defineProperty(window, "neuronExplorer", {
    get() { return this.withheld; },
    set(explorer) {
        this.goOn = explorer.loadPage;
        this.withheld = { ...explorer, loadPage: () => undefined };
    },
});"""
PLACE = """(selector) => {
    const { left, top, width, height } = document.querySelector(selector).getBoundingClientRect();
    return [left, top, width, height];
}"""
RANGE = """() => {
    const { range } = window.neuronTimelines.get("timeline").view;
    return [range.startNs, range.endNs];
}"""
CENTRE = """(name) => {
    const panel = document.querySelector(`.ws-dock .panel-${name}`);
    const box = panel.closest(".dv-groupview").getBoundingClientRect();
    return [box.left + box.width / 2, box.bottom - 12];
}"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from neuron_tools.profile.writer import ProfileWriter

    folder = tmp_path_factory.mktemp("tiny")
    details = {"target": "trn2", "command": ["python", "train.py"]}
    with ProfileWriter(folder / "tiny.nprof", details) as writer:
        for table, columns in TINY_TABLES.items():
            writer.append(table, dict(columns))
    return folder / "tiny.nprof"


@pytest.fixture(scope="module")
def visited(chromium: Any, tiny: Path, tmp_path_factory: Any) -> Iterator[Visit]:
    with served([tiny], tmp_path_factory.mktemp("store")) as url, visit(chromium, url) as found:
        yield found


@pytest.fixture
def explorer(visited: Visit, tiny: Path) -> Visit:
    visited.begin()
    visited.page.set_viewport_size({"width": 1280, "height": 800})
    visited.go(f"/workspace?profile={profile_id(tiny)}")
    return visited


def _choose_line(explorer: Visit) -> None:
    explorer.page.click(".panel-source .line-button >> nth=0")
    explorer.wait_for_query("sel=line")
    explorer.page.wait_for_selector(".panel-source tr.is-chosen")


def test_the_printed_address_opens_the_workspace(explorer: Visit) -> None:
    assert explorer.page.evaluate(SHOWN) == ["advice", "operators", "roofline", "source", "timeline"]
    assert explorer.complaints == []
    assert explorer.page.locator("#heading [aria-current]").inner_text() == ARRANGEMENTS[0].title
    assert explorer.page.evaluate(MISPLACED) == 0


@pytest.mark.parametrize("path", ["workspace", "timeline"])
def test_the_timeline_is_there_before_the_page_and_stays_in_its_place(
    explorer: Visit, tiny: Path, path: str
) -> None:
    page = explorer.page.context.new_page()
    try:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.add_init_script(WITHHELD)
        page.goto(f"{explorer.origin}/{path}?profile={profile_id(tiny)}")
        page.wait_for_function("() => window.neuronTimelines?.get('timeline')?.statistics().isSharp")
        assert page.locator("#page").count() == 0
        ahead = page.evaluate(PLACE, ".ahead-place")
        page.evaluate("() => { window.first = window.neuronTimelines.get('timeline'); window.goOn(); }")
        page.wait_for_selector("#timeline .nt")
        assert page.locator(".ahead").count() == 0
        assert page.evaluate("() => window.neuronTimelines.get('timeline') === window.first")
        place = page.evaluate(PLACE, ".dv-groupview:has(#timeline), main > * > #timeline")
        assert place == pytest.approx(ahead, abs=2)
    finally:
        page.close()


@pytest.mark.parametrize("path", ["workspace", "timeline"])
def test_what_the_user_begins_before_the_page_is_there_goes_on(
    explorer: Visit, tiny: Path, path: str
) -> None:
    page = explorer.page.context.new_page()
    try:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.add_init_script(WITHHELD)
        page.goto(f"{explorer.origin}/{path}?profile={profile_id(tiny)}&start_ns=0&end_ns=600")
        page.wait_for_function("() => window.neuronTimelines?.get('timeline')?.statistics().isSharp")
        opened = page.evaluate(RANGE)
        page.keyboard.press("w")
        page.wait_for_function(f"(ns) => ({RANGE})()[1] < ns", arg=opened[1])
        moved = page.evaluate(RANGE)
        page.keyboard.press("/")
        page.keyboard.type("fus")
        page.evaluate("() => window.goOn()")
        page.wait_for_selector("#timeline .nt")
        page.wait_for_function(IS_SETTLED, polling="raf")
        page.keyboard.type("ion")
        assert page.input_value(".nt-search input") == "fusion"
        assert page.evaluate(RANGE) == pytest.approx(moved, abs=1)
        page.keyboard.press("Enter")
        page.wait_for_selector(".nt-hits:has-text('0 hits')")
    finally:
        page.close()


def test_the_page_takes_the_timeline_over_once_no_button_is_held(explorer: Visit, tiny: Path) -> None:
    page = explorer.page.context.new_page()
    try:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.add_init_script(WITHHELD)
        page.goto(f"{explorer.origin}/timeline?profile={profile_id(tiny)}&start_ns=0&end_ns=600")
        page.wait_for_function("() => window.neuronTimelines?.get('timeline')?.statistics().isSharp")
        box = page.locator(".nt-stage").bounding_box()
        page.mouse.move(box["x"] + 400, box["y"] + 60)
        page.mouse.down()
        page.evaluate("() => window.goOn()")
        page.wait_for_selector("#timeline", state="attached")
        page.mouse.move(box["x"] + 200, box["y"] + 60, steps=5)
        assert page.locator(".ahead .nt").count() == 1
        page.mouse.up()
        page.wait_for_selector("#timeline .nt")
        assert page.evaluate(RANGE)[0] > 0
    finally:
        page.close()


def test_a_timeline_ahead_of_a_page_that_cannot_be_shown_goes_away(explorer: Visit, tiny: Path) -> None:
    page = explorer.page.context.new_page()
    try:
        page.add_init_script(WITHHELD)
        page.route("**/_dash-update-component*", _as_another_page)
        page.goto(f"{explorer.origin}/timeline?profile={profile_id(tiny)}")
        page.wait_for_selector(".ahead .nt")
        page.evaluate("() => window.goOn()")
        page.wait_for_selector("#page > *")
        page.wait_for_selector(".ahead", state="detached")
    finally:
        page.close()


def _as_another_page(route: Any) -> None:
    """Let the server draw a page that it does not have."""
    route.continue_(post_data=(route.request.post_data or "").replace('"/timeline"', '"/nothing"'))


def test_what_is_chosen_in_one_panel_is_shown_by_the_others_and_back_undoes_it(explorer: Visit) -> None:
    _choose_line(explorer)
    lit = "() => window.neuronTimelines.get('timeline').view.highlight?.by"
    assert explorer.page.evaluate(lit) == "line"
    explorer.page.wait_for_function(
        "() => document.querySelector('.ws-told').textContent.includes('1 operation')"
    )
    explorer.page.go_back()
    explorer.page.wait_for_function("() => !location.search.includes('sel=')")
    explorer.page.wait_for_selector(".is-linked", state="detached")


def test_a_link_reproduces_arrangement_and_selection(explorer: Visit) -> None:
    _choose_line(explorer)
    explorer.page.click(".ws-menu > summary")
    explorer.page.click(".ws-menu-item >> text=Hierarchy")
    explorer.page.click(".ws-menu-item >> text=Roofline")
    explorer.page.wait_for_function("() => new URLSearchParams(location.search).has('l')")
    before = explorer.page.evaluate(SHOWN)
    explorer.reload()
    assert explorer.page.evaluate(SHOWN) == before
    explorer.page.wait_for_selector(".panel-source tr.is-chosen")
    explorer.page.click("text=Reset arrangement")
    explorer.page.wait_for_function("() => !new URLSearchParams(location.search).has('l')")
    explorer.page.wait_for_selector(".ws-dock .panel-roofline")


def test_a_panel_is_dragged_enlarged_and_put_back(explorer: Visit) -> None:
    tab = explorer.page.locator(".dv-tab >> text=Roofline")
    x, y = explorer.page.evaluate(CENTRE, "source")
    tab.hover()
    explorer.page.mouse.down()
    explorer.page.mouse.move(x, y - 40, steps=6)
    explorer.page.mouse.move(x, y, steps=6)
    explorer.page.mouse.up()
    explorer.wait_for_query("l=")
    assert explorer.page.evaluate(MISPLACED) == 0
    explorer.page.click(".panel-source")
    explorer.page.keyboard.press("e")
    explorer.wait_for_query("max=")
    explorer.page.keyboard.press("e")
    explorer.page.wait_for_function("() => !location.search.includes('max=')")


@pytest.mark.parametrize("arrangement", [one.name for one in ARRANGEMENTS])
@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_nothing_lies_over_anything_else(explorer: Visit, arrangement: str, size: tuple[int, int]) -> None:
    explorer.page.set_viewport_size({"width": size[0], "height": size[1]})
    explorer.page.click(f"#heading [data-arrangement={arrangement}]")
    explorer.page.wait_for_selector(f"#heading [data-arrangement={arrangement}][aria-current]")
    explorer.settle()
    assert explorer.page.evaluate(MISPLACED) == 0
    assert explorer.page.evaluate(CROWDED) == 0
    assert explorer.complaints == []


def test_it_is_usable_without_a_mouse(explorer: Visit) -> None:
    assert serious_breaches(explorer.page) == []
    explorer.page.keyboard.press("F6")
    focused = "() => document.activeElement.closest('[data-panel]')?.dataset.panel"
    first = explorer.page.evaluate(focused)
    explorer.page.keyboard.press("F6")
    assert first is not None
    assert explorer.page.evaluate(focused) not in (None, first)


def test_panels_are_closed_moved_and_enlarged_by_keyboard(explorer: Visit) -> None:
    press = explorer.page.keyboard.press
    explorer.page.focus(".dv-tab >> text=Operators >> xpath=ancestor::*[contains(@class,'dv-tab ')]")
    press("Delete")
    explorer.page.wait_for_function("() => !document.querySelector('.ws-dock .panel-operators')")
    assert explorer.page.evaluate("() => document.activeElement.closest('[data-panel]') !== null")
    press("e")
    explorer.wait_for_query("max=")
    press("e")
    explorer.page.wait_for_function("() => !location.search.includes('max=')")
    before = explorer.page.evaluate("() => new URLSearchParams(location.search).get('l')")
    explorer.page.focus(".ws-menu > summary")
    press("Enter")
    explorer.page.focus(".ws-menu-item >> text=Move it left")
    press("Enter")
    explorer.page.wait_for_function(
        "(before) => new URLSearchParams(location.search).get('l') !== before", arg=before
    )
    assert explorer.page.evaluate(MISPLACED) == 0


def test_the_former_pages_are_reached_and_lead_back(explorer: Visit) -> None:
    explorer.page.click("text=Pages")
    explorer.page.click("#navigation >> text=Overview")
    explorer.page.wait_for_selector(".figures")
    explorer.page.click("#navigation >> text=Workspace")
    explorer.settle()
    assert "timeline" in explorer.page.evaluate(SHOWN)
    assert explorer.complaints == []
