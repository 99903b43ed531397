"""The timeline in a real browser: what it draws, how it is used, and what it tells the page around it."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import numpy as np
import pytest

from tests.browser.axe import serious_breaches
from tests.browser.timeline_page import (
    TIMELINE,
    WAIT_MS,
    application_at,
    explorer_at,
    sharp_page,
    wait_for_details,
    wait_until_still,
)
from tests.unit.neuron_explorer.timeline.small_profile import write_small_profile

pytestmark = pytest.mark.browser
BODY = ".nt-body"
SPANS = "expanded=" + quote('["p0/core0/hlo"]')  # the spans of the HLO operations in place of charged time
END_NS = 6050
LENGTH_NS = f"({TIMELINE}.view.range?.endNs ?? {END_NS}) - ({TIMELINE}.view.range?.startNs ?? 0)"


@pytest.fixture(scope="module")
def profile(tmp_path_factory: Any) -> Path:
    """The small profile of the unit tests; its spans' names hold a script."""
    return write_small_profile(tmp_path_factory.mktemp("timeline") / "small.nprof")


@pytest.fixture(scope="module")
def address(profile: Path) -> Any:
    """The address of the Explorer's page Timeline, with further parameters."""
    with explorer_at([profile]) as at:
        yield at


def track_row(page: Any, name: str) -> Any:
    """The header of a track."""
    return page.locator(".nt-header", has=page.locator(".nt-name", has_text=name)).first


def middle_of(page: Any, name: str) -> float:
    """Height of a track's first row of spans."""
    box = track_row(page, name).bounding_box()
    return float(box["y"] + 12)


def x_of(page: Any, time_ns: float) -> float:
    """Pixel of a time."""
    box = page.locator(".nt-stage").bounding_box()
    view = page.evaluate(f"{TIMELINE}.view.range")
    start, end = (view["startNs"], view["endNs"]) if view else (0, END_NS)
    return float(box["x"] + (time_ns - start) / (end - start) * box["width"])


def view(page: Any) -> dict[str, Any]:
    return dict(page.evaluate(f"{TIMELINE}.view"))


def test_the_page_works_under_the_policy_and_names_are_never_run(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=200&")) as (page, complaints):
        page.mouse.click(x_of(page, 3), middle_of(page, "Vector"))
        page.wait_for_selector(".nt-panel h3 >> text=<script>alert(1)</script>")
        page.wait_for_selector(".nt-fields >> text=train.py:1")
        assert complaints == []


def test_a_link_reproduces_the_view(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address()) as (page, complaints):
        page.evaluate(f"{TIMELINE}.setView({{ range: {{ startNs: 600, endNs: 1200 }} }})")
        wait_until_still(page)
        track_row(page, "Tensor").hover()
        track_row(page, "Tensor").locator(".nt-pin").click()
        page.wait_for_function("() => location.search.includes('pinned')")
        found = parse_qs(page.evaluate("location.search.slice(1)"))
        assert (found["start_ns"], found["end_ns"]) == (["600"], ["1200"])
        assert json.loads(found["pinned"][0]) == ["p0/core0/engine/Tensor"]
        before = view(page)
        page.reload()
        wait_until_still(page)
        assert view(page) == before
        assert complaints == []


def test_hovering_tells_what_is_there(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address(f"{SPANS}&start_ns=0&end_ns=1200&")) as (page, _):
        page.mouse.move(x_of(page, 300), middle_of(page, "HLO operations"))
        page.wait_for_selector(".nt-tooltip >> text=fusion.0")
        assert "596 ns" in page.inner_text(".nt-tooltip")
        page.evaluate(f"{TIMELINE}.setView({{ range: null }})")
        wait_until_still(page)
        page.mouse.move(x_of(page, 3000), middle_of(page, "Tensor"))
        page.wait_for_selector(".nt-tooltip")


def test_everything_can_be_done_by_keys(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address(f"{SPANS}&start_ns=0&end_ns=3000&")) as (page, complaints):
        page.focus(BODY)
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        page.wait_for_selector(".nt-header.nt-active >> text=HLO operations")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert view(page)["span"]["name"] == "fusion.1"
        page.keyboard.press("f")
        assert view(page)["range"]["startNs"] == pytest.approx(600 - 0.15 * 596)
        page.keyboard.press("p")
        assert view(page)["pinned"] == ["p0/core0/hlo"]
        page.keyboard.press("m")
        assert len(view(page)["markers"]) == 1
        page.keyboard.press("h")
        page.wait_for_function(f"() => {TIMELINE}.view.highlight?.by === 'raw_hlo_id'")
        page.keyboard.press("0")
        assert view(page)["range"] is None
        page.keyboard.press("Escape")
        assert view(page)["span"] is None
        page.keyboard.press("?")
        page.wait_for_selector(".nt-help >> text=Zoom in")
        page.keyboard.press("Escape")
        page.wait_for_selector(".nt-help", state="hidden")
        assert complaints == []


def test_findings_and_warnings_stand_above_the_tracks(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=600&")) as (page, complaints):
        page.wait_for_selector(".nt-header >> text=Warnings")
        wait_until_still(page)
        assert middle_of(page, "Warnings") < middle_of(page, "NeuronCore 0")
        page.mouse.move(x_of(page, 100), middle_of(page, "Warnings"))
        page.wait_for_selector(".nt-tooltip >> text=Small DMA")
        page.mouse.click(x_of(page, 100), middle_of(page, "Warnings"))
        page.wait_for_selector(".nt-panel h3 >> text=Small DMA")
        assert complaints == []


def test_tracks_are_regrouped_and_the_link_keeps_it(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=600&")) as (page, complaints):
        page.get_by_label("Group by").select_option("engine")
        page.wait_for_selector(".nt-heading >> text=DMA")
        page.wait_for_function("() => location.search.includes('group=engine')")
        wait_until_still(page)
        headings = page.locator(".nt-heading .nt-name").all_inner_texts()
        page.reload()
        wait_until_still(page)
        assert page.get_by_label("Group by").input_value() == "engine"
        assert page.locator(".nt-heading .nt-name").all_inner_texts() == headings
        assert complaints == []


def test_colors_tell_groups_and_their_legend_filters(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=600&")) as (page, complaints):

        def picture() -> bytes:
            wait_until_still(page)
            return bytes(page.locator(".nt-stage").screenshot())

        by_engine = picture()
        page.get_by_label("Color by").select_option("opcode")
        page.wait_for_selector(".nt-chips.named .nt-chip >> text=Others")
        named = page.locator(".nt-chip").all_inner_texts()
        by_opcode = picture()
        page.click(".nt-chip >> nth=0")
        assert page.locator(".nt-chip >> nth=0").get_attribute("aria-pressed") == "false"
        dimmed = picture()
        assert "MATMUL" in named
        assert len({by_engine, by_opcode, dimmed}) == 3
        for by in ("module", "line", "wait"):
            page.get_by_label("Color by").select_option(by)
            wait_until_still(page)
        page.get_by_label("Color by").select_option("engine")
        page.wait_for_selector(".nt-chips:not(.named) .nt-chip >> text=Tensor")
        assert picture() == by_engine
        assert complaints == []


def test_markers_and_the_ruler_snap_to_edges(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=60&")) as (page, _):
        page.focus(BODY)
        page.mouse.move(x_of(page, 20) + 4, middle_of(page, "Vector"))
        page.keyboard.press("m")
        assert [marker["timeNs"] for marker in view(page)["markers"]] == [20]
        page.mouse.move(x_of(page, 30) - 4, middle_of(page, "Tensor"))
        page.keyboard.press("m")
        assert [marker["timeNs"] for marker in view(page)["markers"]] == [20, 30]
        page.keyboard.press("r")
        page.mouse.move(x_of(page, 46) + 3, middle_of(page, "Vector"))
        page.keyboard.press("r")
        page.keyboard.press("Escape")


def test_what_is_chosen_can_be_copied_as_a_query(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=200&")) as (page, _):
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.mouse.click(x_of(page, 3), middle_of(page, "Vector"))
        page.click(".nt-panel >> text=Copy as SQL")
        page.wait_for_selector(".nt-panel >> text=Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith('SELECT * FROM "Instruction" WHERE ')


def test_hits_are_stepped_through(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=600&")) as (page, _):
        page.focus(BODY)
        page.keyboard.press("/")
        page.keyboard.type("fusion")
        page.keyboard.press("Enter")
        page.wait_for_selector(".nt-hits:has-text('1 of 10')")
        page.keyboard.press("Enter")
        page.wait_for_selector(".nt-hits:has-text('2 of 10')")
        assert view(page)["span"]["name"] == "fusion.1"
        shown = view(page)["range"]
        assert shown["startNs"] < 600
        assert shown["endNs"] > 1196


def test_a_range_is_chosen_and_its_statistics_are_shown(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=2000&")) as (page, _):
        y = middle_of(page, "Tensor")
        page.keyboard.down("Shift")
        page.mouse.move(x_of(page, 0) + 2, y)
        page.mouse.down()
        page.mouse.move(x_of(page, 1000), y, steps=5)
        page.mouse.up()
        page.keyboard.up("Shift")
        page.wait_for_selector(".nt-panel >> text=Range of")
        page.wait_for_selector(".nt-panel td >> text=MATMUL")
        with page.expect_download() as saved:
            page.click(".nt-panel button >> text=CSV")
        rows = Path(saved.value.path()).read_text().splitlines()
        assert rows[0].startswith("track,name,spans")
        assert any(row.startswith("Tensor,MATMUL,") for row in rows)
        chosen = view(page)["selection"]
        assert chosen["endNs"] - chosen["startNs"] == pytest.approx(1000, abs=10)


def test_every_part_of_a_view_is_in_its_link(chromium: Any, address: Any) -> None:
    changed = {
        "range": {"startNs": 500, "endNs": 2500},
        "selection": {"startNs": 700, "endNs": 900},
        "pinned": ["p0/core0/hlo"],
        "collapsed": ["p0/core0/engine/Tensor"],
        "highlight": {"by": "layer", "value": "/model/a", "label": "a"},
        "markers": [{"timeNs": 800, "text": "slow <b>here</b>"}, {"timeNs": 1200, "text": ""}],
        "search": "fusion",
    }
    with sharp_page(chromium, address()) as (page, complaints):
        page.evaluate(f"(view) => {TIMELINE}.setView(view)", changed)
        wait_until_still(page)
        page.mouse.click(x_of(page, 1000), middle_of(page, "Vector"))
        page.wait_for_function(
            "() => location.search.includes('span=') && location.search.includes('markers')"
        )
        before = view(page)
        page.reload()
        wait_until_still(page)
        assert view(page) == before
        assert {name: before[name] for name in changed} == changed
        page.wait_for_selector(".nt-hits:has-text('10 hits')")
        page.wait_for_selector(".nt-hits:has-text('Lit: a')")
        page.wait_for_selector(".nt-panel >> text=Range of")
        assert complaints == []


def test_a_module_lights_up_what_belongs_to_it(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address(f"{SPANS}&start_ns=0&end_ns=1200&")) as (page, complaints):
        page.mouse.click(x_of(page, 300), middle_of(page, "HLO operations"))
        wait_for_details(page, "fusion.0")
        plain = page.locator(".nt-stage").screenshot()
        page.keyboard.press("h")
        page.wait_for_selector(".nt-hits:has-text('Lit:')")
        wait_until_still(page)
        lit = pixels(page.locator(".nt-stage").screenshot()).astype(int)
        assert (np.abs(lit - pixels(plain)) > 20).any(
            axis=2
        ).mean() > 0.01  # what does not belong turned faint
        page.keyboard.press("h")
        page.wait_for_selector(".nt-hits:has-text('Lit:')", state="detached")
        assert complaints == []


def test_dependencies_are_drawn_and_told(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=120&")) as (page, complaints):
        page.mouse.click(x_of(page, 23), middle_of(page, "Vector"))
        wait_for_details(page)
        before = pixels(page.locator(".nt-stage").screenshot()).astype(int)
        page.keyboard.press("c")
        page.wait_for_selector(".nt-unseen:has-text('1 dependency is shown')", state="attached")
        wait_until_still(page)
        assert (np.abs(before - pixels(page.locator(".nt-stage").screenshot())) > 40).any()
        assert complaints == []


def test_markers_tell_how_far_they_are_apart_and_take_notes(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=2000&")) as (page, complaints):
        y = middle_of(page, "Tensor")
        for time in (400, 900):
            page.mouse.move(x_of(page, time), y)
            page.keyboard.press("m")
        page.keyboard.press("t")
        page.keyboard.type("wait: <i>why</i>")
        page.keyboard.press("Enter")
        first, second = view(page)["markers"]
        assert second["timeNs"] - first["timeNs"] == pytest.approx(500, abs=6)
        assert (first["text"], second["text"]) == ("", "wait: <i>why</i>")
        page.keyboard.press("m")
        assert len(view(page)["markers"]) == 1
        assert complaints == []


def test_markers_are_saved_loaded_and_compared(chromium: Any, profile: Path, tmp_path: Path) -> None:
    other = write_small_profile(tmp_path / "other.nprof")
    set_markers = f"(markers) => {TIMELINE}.setView({{ markers }})"
    before = [{"timeNs": 100, "text": "first"}, {"timeNs": 400, "text": "last"}]
    dialog = "[role=dialog][aria-label=Markers]"
    with explorer_at([profile, other], tmp_path / "store") as at, sharp_page(chromium, at()) as (page, said):
        page.evaluate(set_markers, before)
        page.locator(".nt-button", has_text="Markers").click()
        page.get_by_label("Name for the markers").fill("base")
        page.get_by_label("Save the markers").click()
        page.get_by_text("Saved base.").wait_for()
        assert said == []
    with explorer_at([other, profile], tmp_path / "store") as at, sharp_page(chromium, at()) as (page, said):
        page.evaluate(set_markers, [{"timeNs": 1000, "text": "first"}, {"timeNs": 1250, "text": "last"}])
        page.keyboard.press("Shift+M")
        page.get_by_label("Compare with base (small.nprof)").click()
        page.locator(dialog).get_by_text("−50 ns").wait_for()
        assert serious_breaches(page) == []
        page.get_by_label("Note of marker 2").fill("end")
        page.keyboard.press("Tab")
        assert view(page)["markers"][1]["text"] == "end"
        page.get_by_label("Load base (small.nprof)").click()
        page.locator(dialog).get_by_text("+0 ns").first.wait_for()
        assert view(page)["markers"] == before
        page.keyboard.press("Escape")
        page.locator(dialog).wait_for(state="hidden")
        assert said == []


def test_two_fingers_pinch(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address("start_ns=0&end_ns=2000&"), has_touch=True) as (page, complaints):
        y = middle_of(page, "Tensor")
        middle = x_of(page, 1000)
        session = page.context.new_cdp_session(page)
        for kind, apart in (("touchStart", 50), ("touchMove", 100), ("touchMove", 200), ("touchEnd", None)):
            points = [] if apart is None else [{"x": middle - apart, "y": y}, {"x": middle + apart, "y": y}]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.wait_for_function(f"() => {LENGTH_NS} < 600")
        shown = view(page)["range"]
        assert (shown["startNs"] + shown["endNs"]) / 2 == pytest.approx(1000, abs=20)
        assert view(page)["span"] is None
        assert complaints == []


def test_the_map_and_a_box_choose_what_is_in_sight(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address(f"{SPANS}&")) as (page, _):
        page.mouse.dblclick(x_of(page, 900), middle_of(page, "HLO operations"))
        assert view(page)["range"]["startNs"] == pytest.approx(600 - 0.15 * 596)
        wait_for_details(page)
        strip = page.locator(".nt-overview").bounding_box()
        stage = page.locator(".nt-stage").bounding_box()
        y = strip["y"] + strip["height"] / 2
        page.mouse.move(stage["x"] + 0.5 * stage["width"], y)
        page.mouse.down()
        page.mouse.move(stage["x"] + 0.75 * stage["width"], y, steps=4)
        page.mouse.up()
        chosen = view(page)["range"]
        assert chosen["startNs"] == pytest.approx(0.5 * END_NS, abs=30)
        assert chosen["endNs"] == pytest.approx(0.75 * END_NS, abs=30)
        wait_until_still(page)
        page.keyboard.down("Alt")
        page.mouse.move(x_of(page, 3500), middle_of(page, "Tensor"))
        page.mouse.down()
        page.mouse.move(x_of(page, 4000), middle_of(page, "Vector"), steps=4)
        page.mouse.up()
        page.keyboard.up("Alt")
        boxed = view(page)["range"]
        assert (boxed["startNs"], boxed["endNs"]) == pytest.approx((3500, 4000), abs=10)


def test_zooming_keeps_the_time_under_the_pointer(chromium: Any, address: Any) -> None:
    with sharp_page(chromium, address()) as (page, _):
        x = x_of(page, 2000)
        page.mouse.move(x, middle_of(page, "Tensor"))
        page.keyboard.down("Control")
        for _ in range(4):
            page.mouse.wheel(0, -120)
        page.keyboard.up("Control")
        page.wait_for_function(f"() => {LENGTH_NS} < 4000")
        assert x_of(page, 2000) == pytest.approx(x, abs=2)


def test_both_painters_draw_the_same(chromium: Any, profile: Path) -> None:
    pictures = {}
    with application_at(_application(profile)) as url:
        for painter in ("canvas2d", "webgl2"):
            with sharp_page(chromium, f"{url}?{painter}") as (page, complaints):
                assert page.evaluate(f"{TIMELINE}.statistics().painter") == painter
                pictures[painter] = pixels(page.locator(".nt-stage").screenshot())
                assert complaints == []
    different = (np.abs(pictures["canvas2d"].astype(int) - pictures["webgl2"]) > 40).any(axis=2)
    assert different.mean() < 0.01
    assert len(np.unique(pictures["webgl2"].reshape(-1, 3), axis=0)) > 8


def test_another_dash_application_hears_of_the_view_and_sets_it(chromium: Any, profile: Path) -> None:
    with application_at(_application(profile)) as url, sharp_page(chromium, url) as (page, complaints):
        page.click("#go")
        page.wait_for_function(f"() => {TIMELINE}.view.range?.startNs === 100")
        page.focus(BODY)
        page.keyboard.press("0")
        page.wait_for_selector("#heard:has-text('null')")
        wait_until_still(page)
        page.mouse.click(x_of(page, 900), middle_of(page, "HLO operations"))
        page.wait_for_selector("#told:has-text('fusion.1')")
        assert complaints == []


def test_two_profiles_are_compared(chromium: Any, tmp_path: Path, profile: Path) -> None:
    other = write_small_profile(tmp_path / "other.nprof", duration_ns=3)
    from neuron_explorer.library import profile_id

    with (
        explorer_at([profile, other]) as at,
        sharp_page(chromium, at(f"compare={profile_id(other)}&")) as (
            page,
            complaints,
        ),
    ):
        page.locator(".nt-name", has_text="↳ other.nprof").nth(2).wait_for()
        page.evaluate(f"{TIMELINE}.setView({{ range: {{ startNs: 0, endNs: 300 }} }})")
        wait_until_still(page)
        page.mouse.move(x_of(page, 13), middle_of(page, "Tensor"))
        page.wait_for_selector(".nt-tooltip >> text=100 % slower")
        assert complaints == []


def test_three_profiles_are_compared(chromium: Any, tmp_path: Path, profile: Path) -> None:
    from neuron_explorer.library import profile_id

    for folder in ("slow", "slower"):
        (tmp_path / folder).mkdir()
    others = [
        write_small_profile(tmp_path / "slow" / "run.nprof", duration_ns=3),
        write_small_profile(tmp_path / "slower" / "run.nprof", duration_ns=12),
    ]
    ids = ",".join(map(profile_id, others))
    with (
        explorer_at([profile, *others]) as at,
        sharp_page(chromium, at(f"compare={ids}&")) as (page, complaints),
    ):
        for name in ("slow/run.nprof", "slower/run.nprof"):
            page.locator(".nt-name", has_text=f"↳ {name}").first.wait_for()
        page.evaluate(f"{TIMELINE}.setView({{ range: {{ startNs: 0, endNs: 300 }} }})")
        wait_until_still(page)
        page.mouse.move(x_of(page, 13), middle_of(page, "Tensor"))
        page.wait_for_selector(".nt-tooltip >> text=100 % slower than in slow/run.nprof, on average")
        page.wait_for_selector(".nt-tooltip >> text=50 % faster than in slower/run.nprof, on average")
        assert complaints == []


def test_a_profile_that_cannot_be_read_is_told_with_a_way_on(chromium: Any, address: Any) -> None:
    page = chromium.new_page()
    page.set_default_timeout(WAIT_MS)
    try:
        tracks = "**/data/**/{tracks,ahead}*"
        page.route(tracks, lambda route: route.abort())
        page.goto(address())
        page.wait_for_selector(".nt-notice >> text=Try again")
        page.unroute(tracks)
        page.click(".nt-notice button")
        wait_until_still(page)
        page.wait_for_selector(".nt-notice", state="hidden")
    finally:
        page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_breach(chromium: Any, profile: Path, theme: str) -> None:
    url = f"?{quote(theme)}"
    with application_at(_application(profile)) as base, sharp_page(chromium, base + url) as (page, _):
        page.mouse.click(x_of(page, 900), middle_of(page, "HLO operations"))
        wait_for_details(page)
        assert serious_breaches(page, ".nt") == []
        page.locator(".nt-unseen tbody tr").nth(5).wait_for(state="attached")


def _application(profile: Path) -> Any:
    """An application of somebody else, with the component in it; its address chooses painter or theme."""
    from dash import Dash, Input, Output, dcc, html

    from neuron_explorer.timeline import NeuronTimeline, register
    from neuron_tools.profile.reader import open_profile

    opened = open_profile(profile)

    class Library:
        def get(self, wanted: str) -> Any:
            return opened

    app = Dash("somebody", serve_locally=True, suppress_callback_exceptions=True)
    register(app.server, Library())
    app.layout = html.Div(
        [
            dcc.Location(id="address"),
            html.Button("Go", id="go"),
            html.Div(id="heard"),
            html.Div(id="told"),
            html.Div(id="place", style={"height": "700px"}),
        ]
    )

    @app.callback(Output("place", "children"), Input("address", "search"))
    def show(search: str) -> Any:
        asked = (search or "").lstrip("?")
        painter = asked if asked in ("canvas2d", "webgl2") else "auto"
        theme = asked if asked == "dark" else "light"
        return NeuronTimeline(id="timeline", profile="it", painter=painter, theme=theme)

    @app.callback(Output("timeline", "range"), Input("go", "n_clicks"), prevent_initial_call=True)
    def go(_: int) -> list[int]:
        return [100, 400]

    @app.callback(Output("heard", "children"), Input("timeline", "range"), prevent_initial_call=True)
    def hear(shown: Any) -> str:
        return json.dumps(shown)

    @app.callback(Output("told", "children"), Input("timeline", "details"), prevent_initial_call=True)
    def tell(details: Any) -> str:
        return str((details or {}).get("hlo_name"))

    return app.server


def pixels(png: bytes) -> Any:
    """Red, green and blue of a PNG as browsers write it; uint8, shape (height, width, 3)."""
    width, height = struct.unpack(">II", png[16:24])
    channels = {2: 3, 6: 4}[png[25]]
    data, at = b"", 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    return _unfiltered(rows, channels).reshape(height, width, channels)[:, :, :3]


def _unfiltered(rows: Any, channels: int) -> Any:
    """Undo the filters of a PNG's rows."""
    result = np.zeros((len(rows), rows.shape[1] - 1), np.uint8)
    above = np.zeros(rows.shape[1] - 1, np.int64)
    for number, row in enumerate(rows):
        kind, line = int(row[0]), row[1:].astype(np.int64)
        if kind == 2:
            line = line + above
        elif kind in (1, 3, 4):
            for place in range(0, len(line), channels):
                left = line[place - channels : place] if place else np.zeros(channels, np.int64)
                up = above[place : place + channels]
                corner = above[place - channels : place] if place else np.zeros(channels, np.int64)
                line[place : place + channels] += _predicted(kind, left, up, corner)
                line[place : place + channels] &= 255
        above = line & 255
        result[number] = above
    return result


def _predicted(kind: int, left: Any, up: Any, corner: Any) -> Any:
    if kind == 1:
        return left
    if kind == 3:
        return (left + up) // 2
    guess = left + up - corner
    apart = np.abs(np.array([guess - left, guess - up, guess - corner]))
    return np.array([left, up, corner])[apart.argmin(axis=0), np.arange(len(left))]
