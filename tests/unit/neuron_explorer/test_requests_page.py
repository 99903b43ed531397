"""The page of requests: the numbers of `analyze requests` and of the summary, and where it leads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.figures import requests as figures
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import View
from neuron_explorer.pages.requests import HEADINGS, PAGE
from neuron_explorer.parts.quantities import time_cell
from neuron_explorer.shell import navigation
from neuron_explorer.theme import LIGHT
from neuron_explorer.user_store import UserStore
from neuron_profile.analysis.analyses import run_analysis
from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.serving_loop import find_serving_loop
from neuron_profile.reports.quantities import percent
from neuron_profile.reports.summary_text import total_rows
from neuron_tools import open_profile
from tests.unit.neuron_explorer.packed_tables import Rows, tables_of
from tests.unit.neuron_profile.serving_tables import BATCHED, CACHE_USE, SERVER, host_spans

FIELDS = (
    "arrived_ns", "tokens", "queue_ns", "prefill_ns", "first_token_ns", "decode_ns", "per_token_ns",
    "tokens_per_s",
)  # fmt: skip


@pytest.fixture(autouse=True)
def patience(monkeypatch) -> None:
    """A section waits for its results, however busy the machine is."""
    monkeypatch.setattr("neuron_explorer.sections.PATIENCE_S", 300.0)


@pytest.fixture
def view(make_profile, tmp_path) -> Iterator[View]:
    path = make_profile(tables=host_spans(*BATCHED, *CACHE_USE))
    with ProfileLibrary([path]) as library:
        address = Address("/requests", profile_id(path))
        yield View(library, Analyses(library), address, store=UserStore(tmp_path / "store"))


def drawn(view: View) -> str:
    return json.dumps(PAGE.layout(view), default=lambda part: part.to_plotly_json())


def tables(view: View) -> dict[str, Rows]:
    """The tables of the page by caption."""
    return tables_of(PAGE.layout(view))


def test_requests_that_another_process_prefilled_have_a_handover(make_profile, tmp_path) -> None:
    rows = (
        ("request a", "range", 100, 410), ("queue a", "range", 100, 150), ("token a", "range", 150, 400),
        ("request a", "range", 90, 900, 1), ("queue a", "range", 90, 95, 1),
        ("handover a", "range", 95, 430, 1), ("token a", "range", 95, 500, 1),
    )  # fmt: skip
    path = make_profile(tables=host_spans(*rows))
    with ProfileLibrary([path]) as library:
        address = Address("/requests", profile_id(path))
        shown = tables(View(library, Analyses(library), address, store=UserStore(tmp_path / "store")))
    (row,) = shown["Requests"]
    assert len(row) == len(HEADINGS) + 1
    assert row[-1][1]["v"] == 100


def test_the_table_has_the_numbers_of_analyze_requests(view: View) -> None:
    rows = tables(view)["Requests"]
    assert len(rows) == 2
    for row, request in zip(rows, run_analysis(view.profile, "requests").requests, strict=True):
        measured = asdict(request)
        assert row[0][0] == measured["request"]
        assert [cell[1]["v"] for cell in row[1:-1]] == [measured[name] for name in FIELDS]
    assert len(rows[0]) == len(HEADINGS)


def test_the_kv_cache_is_that_of_analyze_requests(view: View) -> None:
    uses = run_analysis(view.profile, "requests").kv_cache
    fullest = max(uses, key=lambda use: use.used_blocks)
    assert f'"{percent(fullest.of_blocks)}"' in drawn(view)
    assert f'"{fullest.used_blocks} of {fullest.blocks} blocks"' in drawn(view)
    loop = find_serving_loop(view.profile)
    assert loop is not None
    (line,) = figures.cache_figure(loop, LIGHT).data
    assert max(line.y) == fullest.used_blocks
    assert line.x0 == uses[0].start_ns / 1000


def test_the_medians_are_those_of_the_summary(view: View) -> None:
    shown = drawn(view)
    summary = dict(total_rows(make_overview(view.profile)))
    latency = {row[0][0]: [cell[0] for cell in row[1:]] for row in tables(view)["Latency"]}
    median, longest = latency["First token"][0], latency["First token"][2]
    assert summary["Requests"].startswith("2 with 6 tokens")
    assert summary["Tokens"].startswith(f"first after {median} (p99 {longest})")
    assert f"each further {latency['Per token'][0]} (p99 {latency['Per token'][2]})" in summary["Tokens"]
    assert summary["Queue"] == f"{latency['Queue'][0]} (p99 {latency['Queue'][2]})"
    assert f'"{summary["Requests"].split(", ")[1].removesuffix(" tokens/s")}"' in shown


def test_requests_and_iterations_lead_to_their_time_and_line(view: View) -> None:
    shown = tables(view)
    request, *_, line = shown["Requests"][0]
    assert "/workspace?" in request[1]["h"]
    assert "start_ns=100&end_ns=710" in request[1]["h"]
    assert line[0].endswith("serve.py:1")
    assert f"file={SERVER.replace('/', '%2F')}&line=1" in line[1]["h"]
    assert "start_ns=300&end_ns=505" in shown["Iterations"][1][0][1]["h"]


def test_every_range_of_the_address_shows_all_requests(view: View) -> None:
    part = replace(view, address=replace(view.address, start_ns=300, end_ns=400))
    assert tables(part)["Requests"][0][1:-1] == tables(view)["Requests"][0][1:-1]


def test_the_navigation_has_the_page_where_there_are_requests(view: View, make_profile, tmp_path) -> None:
    assert "/requests" in str(navigation(view, None))
    other = make_profile(name="other.nprof")
    with ProfileLibrary([other]) as library:
        without = View(library, Analyses(library), Address("/overview", profile_id(other)))
        assert "/requests" not in str(navigation(without, None))
        assert "/requests" in str(navigation(without, PAGE)), "the page that is shown is there"
        assert "There are no requests with tokens" in drawn(without)


def test_requests_of_one_iteration_have_parts_that_stand_below_each_other(view: View) -> None:
    loop = find_serving_loop(view.profile)
    assert loop is not None
    bars = {bar.name: bar for bar in figures.lanes_figure(loop, [0, 1], LIGHT).data}
    assert list(bars["Decode"].y) == [1, 1, 2]
    assert bars["Decode"].base[1:] == (0.505, 0.505)
    assert list(bars["Queued"].y) == [1, 2]
    assert "iteration 3, 3 tokens of 2 requests" in bars["Iterations"].text[2]


def test_lanes_take_as_many_requests_as_a_chart_holds(view: View, monkeypatch) -> None:
    monkeypatch.setattr("neuron_explorer.pages.requests.MOST_PARTS", 5)
    assert "1 of 2 are shown" in drawn(view)
    slowest = replace(view, address=replace(view.address, parameters={"order": "first"}))
    assert '"ticktext": ["Iterations", "b"]' in drawn(slowest)
    assert [row[0][0] for row in tables(slowest)["Requests"]] == ["b", "a"]


def test_a_request_that_was_cut_off_and_has_a_long_id_is_told_of(make_profile, tmp_path) -> None:
    name = "x" * 4000
    rows = ((f"queue {name}", "range", 0, 10), (f"token {name}", "range", 40, 50))
    path = make_profile(tables=host_spans(*rows))
    with ProfileLibrary([path]) as library:
        address = Address("/requests", profile_id(path))
        view = View(library, Analyses(library), address, store=UserStore(tmp_path / "store"))
        shown, extras = tables(view)["Requests"][0][0]
        page = drawn(view)
    assert shown == f"{'x' * 19}…{'x' * 20} (unfinished)"
    assert (extras["v"], extras["t"]) == (name, name)
    assert "1 token, 1 unfinished" in page
    assert "Per further token" not in page


def test_requests_that_were_aborted_are_told_of(make_profile, tmp_path) -> None:
    rows = (
        ("request a", "range", 0, 90), ("queue a", "range", 0, 10), ("token a", "range", 10, 50),
        ("abort a", "range", 90, 90),
        ("request b", "range", 5, 80), ("queue b", "range", 5, 80), ("abort b", "range", 80, 80),
        ("request c", "range", 6, 70), ("queue c", "range", 6, 20), ("abort c", "range", 70, 70),
    )  # fmt: skip
    path = make_profile(tables=host_spans(*rows))
    with ProfileLibrary([path]) as library:
        address = Address("/requests", profile_id(path), parameters={"order": "first"})
        view = View(library, Analyses(library), address, store=UserStore(tmp_path / "store"))
        shown, page = tables(view)["Requests"], drawn(view)
        loop = find_serving_loop(view.profile)
    assert [row[0][0] for row in shown] == ["a (aborted)", "b (aborted)", "c (aborted)"]
    assert "1 token, 3 aborted" in page
    assert loop is not None
    bars = {bar.name: bar for bar in figures.lanes_figure(loop, [0, 1, 2], LIGHT).data}
    assert list(bars["Queued"].y) == [1, 2, 3]
    assert list(bars["Prefill"].y) == [1, 3]
    assert "until it was aborted" in bars["Prefill"].text[1]


def test_the_curve_of_a_latency_passes_its_quantiles() -> None:
    curve, marks = figures.latency_figure([1000.0, 2000.0, 3000.0], LIGHT).data
    assert (curve.x[0], curve.x[-1]) == (1.0, 3.0)
    assert marks.text[0].strip() == f"p50 {time_cell(2000.0).shown}"


def test_an_open_server_is_drawn_with_what_it_has_done(make_profile) -> None:
    rows = (("request a", "range", 0, 100), ("token a", "range", 40, 50))
    with open_profile(make_profile(tables=host_spans(*rows))) as profile:
        loop = find_serving_loop(profile)
    assert loop is not None
    assert figures.throughput_figure(loop, LIGHT).data[0].y[-1] > 0
