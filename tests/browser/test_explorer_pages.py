"""Every page of the Explorer in a real browser, on profiles of every origin: no complaint, small answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuron_explorer.library import profile_id
from neuron_explorer.pages import pages
from neuron_tools.profile.importers import import_traces
from tests.browser.axe import serious_breaches
from tests.browser.explorer import LARGEST_CALLBACK_BYTES, Visit, served, visit
from tests.fixtures.foreign_traces import device_profile, kineto_document
from tests.unit.neuron_profile.tiny_profile import TINY_TABLES, make_profile, tiny_tables

pytestmark = pytest.mark.browser
__all__ = ["make_profile", "tiny_tables"]

PATHS = sorted(page.path for page in pages() if page.path != "/timeline")
SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"

DROP = """(text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "dropped.json"));
    const drop = document.getElementById("drop");
    for (const kind of ["dragover", "drop"]) {
        drop.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data }));
    }
}"""
# Cards whose chart, table or grid has no button that saves it.
UNSAVED = """[...document.querySelectorAll("#page .card")].filter((card) => {
    const has = (action) => card.querySelector(`[data-action="${action}"], [data-action="grid-download"]`);
    if (card.querySelector(".js-plotly-plot") && !(has("png") && has("svg"))) return true;
    return card.querySelector(".ag-root, table") && !has("csv") && !card.querySelector("a[href*=download]");
}).map((card) => card.getAttribute("aria-label"))"""
# Marks and names what a mouse can act on, but for the cells of a grid, which arrow keys reach.
REACHABLE = """[...document.querySelectorAll("a[href], button, input, textarea, summary")].filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.disabled && !one.closest(".ag-root-wrapper")
).map((one) => { one.dataset.wanted = "yes"; return one.textContent; })"""
MISSED = """[...document.querySelectorAll("[data-wanted]")].filter((one) => !one.dataset.reached)
    .map((one) => one.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small profile of each origin."""
    folder = tmp_path_factory.mktemp("profiles")
    documents = {"torch": kineto_document(), "aws": device_profile()}
    made = {}
    for name, document in documents.items():
        trace = folder / f"{name}.json"
        trace.write_text(json.dumps(document))
        made[name] = import_traces([trace], folder / f"{name}.nprof").path
    return made


@pytest.fixture(scope="module")
def visited(chromium: Any, profiles: dict[str, Path], tmp_path_factory: Any) -> Iterator[Visit]:
    tiny = _tiny(tmp_path_factory.mktemp("tiny"))
    profiles["tiny"] = tiny
    store = tmp_path_factory.mktemp("store")
    with served(list(profiles.values()), store) as url, visit(chromium, url) as found:
        yield found


@pytest.fixture
def explorer(visited: Visit) -> Visit:
    """The Explorer in a browser, with nothing left of the test before."""
    visited.begin()
    return visited


def _tiny(folder: Path, tables: Any = None, name: str = "tiny.nprof") -> Path:
    from neuron_tools.profile.writer import ProfileWriter

    with ProfileWriter(folder / name, {"target": "trn2", "command": ["python", "train.py"]}) as writer:
        for table, columns in (tables or TINY_TABLES).items():
            writer.append(table, dict(columns))
    return folder / name


@pytest.mark.parametrize("origin", ["tiny", "torch", "aws"])
@pytest.mark.parametrize("path", PATHS)
def test_a_page_shows_a_profile_without_complaint(
    explorer: Visit, profiles: dict[str, Path], path: str, origin: str
) -> None:
    explorer.go(f"{path}?profile={profile_id(profiles[origin])}")
    assert explorer.complaints == []
    assert explorer.page.query_selector(".state.error") is None
    assert explorer.page.evaluate(UNSAVED) == []
    assert max(explorer.callback_bytes) <= LARGEST_CALLBACK_BYTES
    assert "token" not in explorer.page.url


def test_known_numbers_stand_on_the_pages(explorer: Visit, profiles: dict[str, Path]) -> None:
    profile = profile_id(profiles["tiny"])
    explorer.go(f"/overview?profile={profile}")
    assert "200 ns" in explorer.page.inner_text(".figures")
    explorer.page.wait_for_function("() => document.title === 'Overview · tiny.nprof · Neuron Explorer'")
    explorer.go(f"/hierarchy?profile={profile}")
    explorer.page.wait_for_selector("#tree-table >> text=model")
    explorer.go(f"/operators?profile={profile}&by=operations")
    explorer.page.wait_for_selector(".ag-cell >> text=aten::addmm")


def test_a_line_is_followed_to_what_it_became(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/source?profile={profile_id(profiles['tiny'])}")
    explorer.page.click("button.line-button >> nth=0")
    explorer.page.wait_for_selector("text=side by side")
    explorer.wait_for_query("line=2")
    explorer.reload()
    explorer.page.wait_for_selector("table.code tr.chosen >> text=y = layer(x)")


def test_a_query_runs_and_its_address_reproduces_it(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/query?profile={profile_id(profiles['tiny'])}")
    explorer.page.fill("#query-text", "SELECT engine AS e, count(*) AS n FROM Instruction GROUP BY ALL")
    explorer.page.press("#query-text", "Control+Enter")
    explorer.page.wait_for_selector(".ag-cell >> text=Tensor")
    explorer.wait_for_query("sql=SELECT")
    explorer.page.click(".choice >> text=Bars")
    explorer.settle()
    explorer.page.wait_for_selector(".js-plotly-plot .bars")


@pytest.mark.parametrize(
    "query", ["DROP TABLE Instruction", "COPY (SELECT 1) TO '/tmp/x'", "SELECT * FROM '/etc/passwd'"]
)
def test_a_query_that_writes_or_reads_files_is_refused(
    explorer: Visit, profiles: dict[str, Path], query: str
) -> None:
    explorer.go(f"/query?profile={profile_id(profiles['tiny'])}")
    explorer.page.fill("#query-text", query)
    explorer.page.click("#query-run")
    explorer.page.wait_for_selector("#query-result .state.error")
    assert "root:" not in explorer.page.inner_text("#query-result")


def test_long_work_is_told_and_cancelled(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/query?profile={profile_id(profiles['tiny'])}")
    explorer.page.fill("#query-text", "SELECT count(*) FROM range(100000000000) a, range(1000) b")
    explorer.page.click("#query-run")
    explorer.page.wait_for_selector("#query-result .state.loading >> text=Running the query")
    explorer.page.click("#query-result >> text=Cancel")
    explorer.page.wait_for_selector("#query-result >> text=Cancelled")
    explorer.page.fill("#query-text", "SELECT 42 AS answer")
    explorer.page.click("#query-run")
    explorer.page.wait_for_selector(".ag-cell >> text=42")


def test_a_chosen_range_goes_along_and_is_removed(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/overview?profile={profile_id(profiles['tiny'])}&start_ns=1200&end_ns=1300")
    assert "100 ns" in explorer.page.inner_text(".figures")
    explorer.page.click("nav >> text=Hierarchy")
    explorer.page.wait_for_selector("h1 >> text=Hierarchy")
    explorer.settle()
    explorer.wait_for_query("start_ns=1200")
    explorer.page.click("a[aria-label='Show all of the profile']")
    explorer.page.wait_for_selector("#tree-table >> text=aten::addmm", state="attached")
    explorer.page.wait_for_function("() => !location.search.includes('start_ns')")


def test_two_profiles_are_compared(explorer: Visit, profiles: dict[str, Path]) -> None:
    tiny, aws = profile_id(profiles["tiny"]), profile_id(profiles["aws"])
    explorer.go(f"/diff?profile={tiny}&base={aws}")
    explorer.page.wait_for_selector("table >> text=Device time")
    explorer.page.wait_for_selector("td >> text=aten::mul")


def test_tables_and_charts_are_saved(explorer: Visit, profiles: dict[str, Path], tmp_path: Path) -> None:
    explorer.go(f"/overview?profile={profile_id(profiles['tiny'])}")
    for selector, ending in (("button[data-action=csv]", "csv"), ("button[data-action=svg]", "svg"),
                             ("button[data-action=png]", "png")):  # fmt: skip
        with explorer.page.expect_download() as started:
            explorer.page.click(f"{selector} >> nth=0")
        target = tmp_path / f"saved.{ending}"
        started.value.save_as(target)
        assert started.value.suggested_filename.endswith(f".{ending}")
        assert target.stat().st_size > 50


@pytest.mark.parametrize(
    ("address", "chosen"),
    [
        ("/operators?by=opcode", "Instruction"),
        ("/roofline?level=module", "Module"),
        ("/memory?memory=PSUM", ""),
        ("/query?sql=SELECT+engine,+count(*)+AS+n+FROM+Instruction+GROUP+BY+1&chart=bar", "Bars"),
        ("/hierarchy?start_ns=1200&end_ns=1300", ""),
        ("/source?line=3", ""),
    ],
)
def test_a_link_reproduces_a_page(
    explorer: Visit, profiles: dict[str, Path], address: str, chosen: str
) -> None:
    explorer.go(f"{address}&profile={profile_id(profiles['tiny'])}")
    text = explorer.page.inner_text("#page")
    explorer.reload()
    assert explorer.page.inner_text("#page") == text
    if chosen:
        explorer.page.wait_for_selector(f".choice[aria-current] >> text={chosen}")


def test_the_order_of_a_grid_is_in_its_link(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/operators?by=instructions&profile={profile_id(profiles['tiny'])}")
    explorer.page.click(".ag-header-cell-text >> text=Start")
    explorer.wait_for_query("start_ts")
    explorer.reload()
    explorer.page.wait_for_selector(".ag-header-cell[col-id=start_ts][aria-sort=descending]")
    assert explorer.complaints == []


def test_an_export_is_made_and_saved(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/export?profile={profile_id(profiles['tiny'])}")
    explorer.page.click("button >> text=Chrome trace")
    explorer.page.wait_for_selector("#export-tasks >> text=Save")
    with explorer.page.expect_download() as started:
        explorer.page.click("#export-tasks >> text=Save")
    assert "traceEvents" in Path(started.value.path()).read_text()


@pytest.mark.parametrize(("name", "way"), [("torch", "name"), ("aws", "engine")])
def test_the_timeline_colors_by_name_where_no_engine_ran(
    explorer: Visit, profiles: dict[str, Path], name: str, way: str
) -> None:
    explorer.go(f"/timeline?profile={profile_id(profiles[name])}")
    explorer.page.wait_for_function(
        """(way) => document.querySelector("select[aria-label='Color by']")?.value === way""", arg=way
    )
    assert explorer.complaints == []


def test_a_trace_is_imported_by_its_path(explorer: Visit, profiles: dict[str, Path]) -> None:
    trace = profiles["torch"].parent / "torch.json"
    explorer.go("/")
    explorer.page.fill("#import-path", str(trace))
    explorer.page.click("#import-button")
    explorer.page.click("#import-tasks >> text=Open")
    explorer.page.wait_for_selector(".ws-dock")


def test_a_trace_is_imported_by_choosing_its_file(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go("/")
    with explorer.page.expect_file_chooser() as chooser:
        explorer.page.click("text=choose files")
    chooser.value.set_files(profiles["aws"].parent / "aws.json")
    explorer.page.wait_for_selector("#import-tasks li:first-child >> text=aws.nprof")
    explorer.page.wait_for_selector("#import-tasks li:first-child >> text=Open")


def test_a_trace_is_imported_by_dropping_it(explorer: Visit) -> None:
    explorer.go("/")
    explorer.page.evaluate(DROP, json.dumps(kineto_document()))
    explorer.page.wait_for_selector("#import-tasks li:first-child >> text=dropped.nprof")
    explorer.page.click("#import-tasks li:first-child >> text=Open")
    explorer.page.wait_for_selector(".ws-dock")
    assert explorer.complaints == []


def test_what_is_dropped_and_is_no_trace_is_told(explorer: Visit) -> None:
    explorer.go("/")
    explorer.page.evaluate(DROP, "no trace at all")
    explorer.page.wait_for_selector("#import-tasks li:first-child:has-text('dropped') [role=alert]")


def test_tags_are_kept(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/?edit={profile_id(profiles['tiny'])}")
    explorer.page.fill("#tag-field", "baseline, <b>bold</b>")
    explorer.page.click("#tag-button")
    explorer.page.wait_for_selector("#profile-list .tag >> text=<b>bold</b>")


def test_a_profile_is_deleted_after_a_question(chromium: Any, tmp_path: Path) -> None:
    path = _tiny(tmp_path, name="old.nprof")
    kept = _tiny(tmp_path, name="kept.nprof")
    with served([tmp_path], tmp_path / "store") as url, visit(chromium, url) as found:
        found.page.click("a[aria-label='Delete old.nprof']")
        found.page.wait_for_selector("text=This cannot be undone")
        assert path.exists()
        found.page.click("#delete-button")
        found.page.wait_for_selector("a[aria-label='Delete old.nprof']", state="detached")
    assert (path.exists(), kept.exists()) == (False, True)


def test_text_of_a_profile_stays_text(chromium: Any, tmp_path: Path) -> None:
    evil = {
        **TINY_TABLES,
        "FrameworkInstruction": {
            **TINY_TABLES["FrameworkInstruction"],
            "framework_name": [SCRIPT] * 3,
            "layer": [f"/{SCRIPT.replace('/', '')}"] * 3,
        },
        "HostSpan": {**TINY_TABLES["HostSpan"], "name": [SCRIPT] * 2},
        "SourceFile": {**TINY_TABLES["SourceFile"], "text": [f"\n{SCRIPT}\n"]},
        "Warning": {"message": [SCRIPT], "category": ["x"]},
    }
    path = _tiny(tmp_path, evil, name="<b>x.nprof")
    with served([path], tmp_path / "store") as url, visit(chromium, url) as found:
        for page in PATHS:
            found.go(f"{page}?profile={profile_id(path)}")
            assert "owned" not in found.page.title()
            assert found.page.query_selector("main img[src=x]") is None
        found.go(f"/query?profile={profile_id(path)}&chart=bar&sql=SELECT+name,+1+AS+n+FROM+HostSpan")
        assert "owned" not in found.page.title()
        assert found.complaints == []


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_no_serious_breach(
    chromium: Any, explorer: Visit, profiles: dict[str, Path], theme: str, tmp_path: Path
) -> None:
    breaches = {}
    with served(list(profiles.values()), tmp_path) as url, visit(chromium, url, color_scheme=theme) as found:
        for path in PATHS:
            found.go(f"{path}?profile={profile_id(profiles['tiny'])}")
            breaches[path] = serious_breaches(found.page)
    assert not any(breaches.values()), breaches


def test_pages_are_reached_by_keyboard_alone(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/hierarchy?profile={profile_id(profiles['tiny'])}")
    explorer.page.keyboard.press("Tab")
    assert explorer.page.evaluate("document.activeElement.textContent") == "Skip to the page"
    for _ in range(30):
        explorer.page.keyboard.press("Tab")
        if explorer.page.evaluate("document.activeElement.textContent") == "Memory":
            break
    explorer.page.keyboard.press("Enter")
    explorer.page.wait_for_selector("h1 >> text=Memory")
    explorer.go(f"/hierarchy?profile={profile_id(profiles['tiny'])}")
    toggle = explorer.page.wait_for_selector(".tree-toggle[aria-expanded=true] >> nth=1")
    toggle.focus()
    explorer.page.keyboard.press("ArrowLeft")
    assert toggle.get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize("path", PATHS)
def test_tab_reaches_everything_on_a_page(explorer: Visit, profiles: dict[str, Path], path: str) -> None:
    explorer.go(f"{path}?profile={profile_id(profiles['tiny'])}&base={profile_id(profiles['aws'])}")
    wanted = explorer.page.evaluate(REACHABLE)
    for _ in range(len(wanted) + 40):
        explorer.page.keyboard.press("Tab")
        explorer.page.evaluate("document.activeElement.dataset.reached = 'yes'")
    missed = explorer.page.evaluate(MISSED)
    assert missed == []
    assert len(wanted) > 5


def test_the_theme_follows_the_switch(explorer: Visit, profiles: dict[str, Path]) -> None:
    explorer.go(f"/overview?profile={profile_id(profiles['tiny'])}")
    before = explorer.page.get_attribute("html", "data-theme")
    for theme in ("dark" if before == "light" else "light", before):
        with explorer.page.expect_event("load"):  # the switch loads the page again, in the other colours
            explorer.page.click("button >> text=Theme")
        explorer.settle()
        assert explorer.page.get_attribute("html", "data-theme") == theme
