"""What pages show of a profile with known sums, without a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from neuron_explorer.address import Address
from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.module_tree import make_tree, operation_work, tree_rows
from neuron_explorer.page import View
from neuron_explorer.pages import find_page, pages
from neuron_explorer.pages.source import MOST_LINES, file_data
from neuron_explorer.query_results import run_query
from neuron_explorer.source_costs import LineWork, line_work, source_files, source_work
from neuron_explorer.user_store import UserStore
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.line_times import LineTimes
from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools import open_profile
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import Profile
from tests.fixtures.foreign_traces import device_profile
from tests.fixtures.gpu_trace import gpu_document, host
from tests.unit.neuron_explorer.packed_tables import tables_of
from tests.unit.neuron_profile.analysis.tensor_tables import with_tensors
from tests.unit.neuron_profile.tiny_profile import SOURCE_PATH


@pytest.fixture(autouse=True)
def patience(monkeypatch) -> None:
    """A section waits for its results, however busy the machine is."""
    monkeypatch.setattr("neuron_explorer.sections.PATIENCE_S", 300.0)


@pytest.fixture
def profile(make_profile) -> Iterator[Profile]:
    with open_profile(make_profile()) as opened:
        yield opened


@pytest.fixture
def view(make_profile, tmp_path) -> Iterator[View]:
    path = make_profile()
    with ProfileLibrary([path]) as library:
        address = Address("/", profile_id(path))
        yield View(library, Analyses(library), address, store=UserStore(tmp_path / "store"))


def drawn(view: View, path: str, **parameters: str) -> str:
    """A page as the browser gets it, its sections drawn."""
    found = find_page(path)
    assert found is not None
    address = replace(view.address, path=path, parameters=parameters)
    layout = found.layout(replace(view, address=address))
    text = json.dumps([layout, tables_of(layout)], default=lambda part: part.to_plotly_json())
    return text.replace('\\"', '"')


def test_every_page_is_drawn_for_every_range(view: View) -> None:
    for page in pages():
        if page.path == "/timeline":
            continue
        for start, end in ((None, None), (1200, 1300), (10_000, 20_000)):
            shown = drawn(replace(view, address=replace(view.address, start_ns=start, end_ns=end)), page.path)
            assert '"className": "state error"' not in shown, page.path


def test_the_overview_has_the_sums_of_the_profile_or_of_the_range(view: View) -> None:
    assert '"200 ns"' in drawn(view, "/overview")
    second = replace(view, address=replace(view.address, start_ns=1200, end_ns=1300))
    shown = drawn(second, "/overview")
    assert '"100 ns"' in shown
    assert "aten::addmm" not in shown


@pytest.fixture
def foreign_view(tmp_path) -> Iterator[Callable[[object], View]]:
    """Imports a trace of another tool, and gives a view of it."""
    with ExitStack() as opened:

        def make(document: object) -> View:
            (tmp_path / "trace.json").write_text(json.dumps(document))
            path = import_traces([tmp_path / "trace.json"], tmp_path / "trace.nprof").path
            library = opened.enter_context(ProfileLibrary([path]))
            store = UserStore(tmp_path / "store")
            return View(library, Analyses(library), Address("/", profile_id(path)), store=store)

        yield make


def test_a_device_without_a_host_is_not_said_to_have_done_nothing(foreign_view) -> None:
    shown = drawn(foreign_view(device_profile()), "/overview")
    assert "The device alone was profiled: " in shown
    assert "Nothing ran" not in shown
    assert '"Device active"' in shown


def test_a_trace_of_a_host_is_not_measured_as_a_device(foreign_view) -> None:
    shown = drawn(foreign_view({"traceEvents": [host("aten::mm", "cpu_op", 0, 8)]}), "/overview")
    assert "No device in this trace: 1 span of the host alone; most time in aten::mm" in shown
    assert "Device busy" not in shown


def test_a_gpu_trace_names_its_device_and_what_it_did(foreign_view) -> None:
    shown = drawn(foreign_view(gpu_document()), "/overview")
    assert "NVIDIA H100 80GB HBM3" in shown
    assert "The device was busy 87.7 % of the time" in shown
    assert "torch.profiler, imported by neuron-tools" in shown
    assert "NeuronCore" not in shown


def test_collectives_of_a_gpu_trace_are_on_the_page(foreign_view) -> None:
    shown = drawn(foreign_view(gpu_document()), "/communication")
    assert "AllReduce" in shown
    assert "There are no collectives" not in shown


def test_the_host_page_has_the_calls_of_the_host(make_profile, tiny_tables) -> None:
    samples = {
        "worker_idx": [0] * 3, "thread_idx": [0] * 3, "process_idx": [0] * 3, "is_leading": [True] * 3,
        "kind": ["python", "python", "data_loading"], "stack_frame_ids": ["2", "2", "1"],
        "start_ts": [0, 600, 1100], "end_ts": [600, 1100, 1200], "duration_ns": [600, 500, 100],
    }  # fmt: skip
    path = make_profile(tables={**tiny_tables, "HostSample": samples})
    with ProfileLibrary([path]) as library:
        view = View(library, Analyses(library), Address("/", profile_id(path)))
        shown, idle = drawn(view, "/host"), drawn(view, "/host", time="idle")
    assert "main \\u00b7 train.py:2" in shown
    assert "1.20 \\u00b5s" in shown
    assert "1.10 \\u00b5s" in idle
    assert "data loading" in shown


def test_the_memory_page_says_who_holds_the_peak(make_profile, tiny_tables) -> None:
    events = {
        "event_idx": [0, 1], "timestamp": [10, 20], "kind": ["allocate"] * 2, "address": [1, 2],
        "size": [4_000, 1_000], "held_bytes": [4_000, 5_000], "category": ["other", "activation"],
        "framework_name": ["aten::empty", "aten::mm"], "layer": ["/main()", "/Net/fc"],
        "source_file": ["/project/train.py"] * 2, "source_line": [2, 3], "process_idx": [0] * 2,
        "pcore_idx": [0] * 2,
    }  # fmt: skip
    name = {"address": [1], "name": ["Net.fc.weight"], "category": ["parameter"], "process_idx": [0]}
    path = make_profile(tables={**tiny_tables, "MemoryEvent": events, "TensorName": name})
    with ProfileLibrary([path]) as library:
        shown = drawn(View(library, Analyses(library), Address("/", profile_id(path))), "/memory")
    for told in ("Net.fc.weight", "parameter", "aten::mm", "/Net/fc", "train.py:3", "line=3"):
        assert told in shown


def test_the_tree_has_modules_and_operations(profile: Profile) -> None:
    root = make_tree(charge_device_time(profile).charges, operation_work(profile))
    rows = [(row.depth, row.node.name, row.node.device_ns) for row in tree_rows(root, 100)]
    assert rows == [
        (0, "(whole program)", 150.0),
        (1, "model", 150.0),
        (2, "a", 130.0),
        (3, "aten::addmm", 100.0),
        (3, "aten::mul", 30.0),
        (2, "b", 20.0),
        (3, "aten::mul", 20.0),
    ]


def test_a_cut_tree_keeps_the_parents_of_what_it_keeps(profile: Profile) -> None:
    root = make_tree(charge_device_time(profile).charges, {})
    rows = tree_rows(root, 4)
    assert [row.node.name for row in rows] == ["(whole program)", "model", "a", "aten::addmm"]
    assert [row.parent for row in rows] == [-1, 0, 1, 2]


def test_lines_have_their_work(make_profile, tiny_tables) -> None:
    places = {"source_file": ["/a.py"] * 5, "source_line": [2, 2, 2, 3, 3]}
    tables = {**tiny_tables, "Instruction": {**tiny_tables["Instruction"], **places}}
    with open_profile(make_profile(tables=tables)) as profile:
        assert "/a.py" in source_files(profile)
        work = source_work(profile, "/a.py")
        assert (work[2].instructions, dict(work[2].engine_ns)) == (3, {"sync": 2, "tensor": 40, "vector": 30})
        detail = line_work(profile, "/a.py", "2")
        assert [row["opcode"] for row in detail.instructions] == ["DMA_TRIGGER", "MATMUL", "TENSOR_TENSOR"]
        assert line_work(profile, "/a.py", "99").instructions == ()


def test_a_line_has_the_work_of_the_libraries_it_calls(make_profile, tiny_tables) -> None:
    library = "/env/site-packages/library.py"
    exact = {"source_file": [library] * 5, "source_line": [3] * 5}
    called = {"source_file": [library] * 3, "source_line": [3] * 3, "stack_frame_ids": ["2"] * 3}
    tables = {
        **tiny_tables,
        "Instruction": {**tiny_tables["Instruction"], **exact},
        "FrameworkInstruction": {**tiny_tables["FrameworkInstruction"], **called},
        "StackFrameFileLocation": {**tiny_tables["StackFrameFileLocation"], "file_name_id": [1, 2]},
        "StackFrameFileName": {"id": ["1", "2"], "name": ["/project/train.py", library]},
    }
    with open_profile(make_profile(tables=tables)) as profile:
        own, inside = source_work(profile, "/project/train.py"), source_work(profile, library)
        detail = line_work(profile, "/project/train.py", "2")
        overview = make_overview(profile)
    assert (own[2].instructions, own[2].busy_ns) == (inside[3].instructions, inside[3].busy_ns) == (5, 142)
    assert len(detail.instructions) == 3
    assert [(row["file"], row["line"], row["calls"]) for row in detail.libraries] == [(library, 3, 3)]
    assert LineTimes.of(overview.hotspots, (), "/project/train.py").charged.keys() == {2}
    assert LineTimes.of(overview.hotspots, (), library).charged.keys() == {3}


def test_a_line_without_device_time_has_the_hosts() -> None:
    work = {1: LineWork(host_ns=900), 2: LineWork(host_ns=900)}
    host, both = file_data(["a()", "b()"], work, LineTimes({2: 10.0}), 0)["lines"]
    assert (host[2], host[-1]) == (900, True)
    assert (both[2], both[-1]) == (10, False)


def test_a_long_file_is_shown_around_the_line() -> None:
    texts = ["x = 1"] * 10_000
    data = file_data(texts, {5000: LineWork(instructions=1)}, LineTimes({5000: 10.0}), 0)
    assert data["first"] <= 5000 <= data["last"]
    assert data["last"] - data["first"] < MOST_LINES
    assert len(json.dumps(data)) < 60_000
    asked = file_data(texts, {}, LineTimes({5000: 10.0}), 9_990)
    assert asked["last"] == 10_000


def test_a_file_without_text_has_the_numbers_of_its_lines() -> None:
    data = file_data([], {3: LineWork(instructions=2)}, LineTimes({7: 5.0}), 0)
    assert [line[0] for line in data["lines"]] == [3, 7]


def test_lines_of_any_length_stay_small() -> None:
    data = file_data(["y" * 30_000] * 50, {}, LineTimes({25: 1.0}), 25)
    assert data["first"] <= 25 <= data["last"]
    assert len(json.dumps(data)) < 100_000


def test_a_query_result_is_bounded(view: View) -> None:
    from neuron_explorer.jobs import Progress, WatchedProfile

    result = run_query(WatchedProfile(view.profile, Progress()), "SELECT range AS n FROM range(1000000)")
    assert (result.table.num_rows, result.is_cut) == (10_000, True)


def test_wide_results_with_long_texts_stay_small(view: View) -> None:
    from neuron_explorer.grid_rows import Request
    from neuron_explorer.jobs import Progress, WatchedProfile
    from neuron_explorer.query_results import result_rows

    columns = ", ".join(f"repeat('z', 5000) AS c{n}" for n in range(50))
    result = run_query(WatchedProfile(view.profile, Progress()), f"SELECT {columns} FROM range(100)")
    rows = result_rows(result, Request(end=result.block_rows), ())
    assert len(rows) >= 10
    assert len(json.dumps(rows)) <= 100_000


def test_a_saved_query_is_offered(view: View) -> None:
    view.store.save_query("mine", "SELECT 42")
    assert "sql=SELECT+42" in drawn(view, "/query")


def test_answers_of_pages_are_small(view: View) -> None:
    sizes = {page.path: len(drawn(view, page.path)) for page in pages() if page.path != "/timeline"}
    assert max(sizes.values()) <= 100_000, sizes


def test_advice_shows_the_edit_that_mends_a_finding(view: View, monkeypatch) -> None:
    pytest.importorskip("libcst")
    unused = Finding("unused_outputs", "spare is never read", "Leave it out.", Place(SOURCE_PATH, 2))
    other = Finding("throttling", "The engine is slow", "Wait.", Place(SOURCE_PATH, 2))
    monkeypatch.setattr("neuron_explorer.results.advise", lambda profile: (unused, other))
    monkeypatch.setattr(
        "neuron_profile.fix.propose.SourceTexts.text",
        lambda texts, file: "def f(x):\n    spare = x @ x\n    return x\n",
    )
    assert drawn(view, "/advice").count("Show the edit") == 1
    shown = drawn(view, "/advice", edit="1")
    assert "-    spare = x @ x" in shown
    assert "--finding 1" in shown
    assert "No edit can be derived for throttling" in drawn(view, "/advice", edit="2")
    assert "There is no finding 9" in drawn(view, "/advice", edit="9")


def test_advice_says_what_the_compiler_decides(view: View, monkeypatch) -> None:
    place = Place(SOURCE_PATH, 2)
    found = (Finding("a", "t", "Change it.", place), Finding("b", "t", "Merge.", place, within_reach=False))
    monkeypatch.setattr("neuron_explorer.results.advise", lambda profile: found)
    shown = drawn(view, "/advice")
    assert "The compiler decides this. Merge." in shown
    assert shown.count("The compiler decides") == 1


def test_regions_are_compared_side_by_side(view: View) -> None:
    shown = drawn(view, "/regions")
    assert "/model/a" in shown
    assert "Side by side" not in shown
    compared = drawn(view, "/regions", regions='["layer:/model/b", "layer:/model/a", "layer:/none"]')
    assert "Side by side" in compared
    assert "6.50 " in compared


def test_a_tensor_leads_to_who_reads_and_writes_it(make_profile, tiny_tables) -> None:
    path = make_profile(tables=with_tensors(tiny_tables))
    with ProfileLibrary([path]) as library:
        view = View(library, Analyses(library), Address("/", profile_id(path)))
        shown = drawn(view, "/tensors", tensor="head.weight")
        assert "Who reads and writes head.weight" in shown
        assert "Who reads" not in drawn(view, "/tensors")
        assert "2.00 " in shown
