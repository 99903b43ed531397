"""Exported traces in the real Perfetto UI: what its trace processor counts is what the tables hold."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

from neuron_tools.profile.export import export_chrome, export_perfetto
from neuron_tools.profile.reader import open_profile
from tests.browser.perfetto_ui import PerfettoUi, perfetto_ui
from tests.fixtures.synthetic_profile import synthetic_profile
from tests.integration.commands.capturing import Workplace

pytestmark = pytest.mark.browser

PROBLEMS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
ALL_ARE_WORDS = """(wanted) => {
    const words = new Set(document.body.innerText.split(/\\s+/));
    return wanted.every((word) => words.has(word));
}"""
Totals = dict[tuple[Any, ...], tuple[int, int]]


@dataclass(frozen=True)
class Opened:
    """A profile, its trace in the UI, and what the exporter reported."""

    profile: Any
    ui: PerfettoUi
    counts: dict[str, int]


TRAINING = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(32, 64).to("neuron"), torch.randint(0, 10, (32,)).to("neuron")
for step in range(3):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


@pytest.fixture(scope="module", params=["synthetic", "captured"])
def profile(request, tmp_path_factory):
    """The profile under test: anything with `.sql(...)` over the published tables can stand here."""
    if request.param == "synthetic":
        yield synthetic_profile(400)
        return
    workplace = Workplace(tmp_path_factory.mktemp("captured"))
    workplace.script("train.py", TRAINING)
    ran = workplace.capture(sys.executable, "train.py", options=("-o", "run.nprof"))
    assert ran.returncode == 0, ran.stderr
    with open_profile(workplace.folder / "run.nprof") as opened:
        yield opened


@pytest.fixture(scope="module")
def opened(profile, tmp_path_factory, chromium):
    path = tmp_path_factory.mktemp("perfetto") / "run.pftrace"
    report = export_perfetto(profile, path)
    with perfetto_ui(path, chromium) as ui:
        yield Opened(profile, ui, report.counts)


@pytest.fixture(scope="module")
def opened_chrome(profile, tmp_path_factory, chromium):
    path = tmp_path_factory.mktemp("chrome") / "run.json"
    report = export_chrome(profile, path)
    with perfetto_ui(path, chromium) as ui:
        yield Opened(profile, ui, report.counts)


def drawn_totals(ui: PerfettoUi, condition: str = "TRUE") -> Totals:
    """(process rank, headings ..., track) -> (slices, sum of durations), lanes of one name together."""
    parents = {row[0]: row[1:] for row in ui.query("SELECT id, name, parent_id FROM track")}
    processes = dict(
        ui.query("SELECT t.id, p.pid FROM process_track t JOIN process p USING (upid)")
        + ui.query(
            "SELECT t.id, p.pid FROM thread_track t JOIN thread USING (utid) JOIN process p USING (upid)"
        )
    )
    threads = dict(ui.query("SELECT t.id, thread.name FROM thread_track t JOIN thread USING (utid)"))
    totals: dict[tuple[Any, ...], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for track, count, duration in ui.query(
        f"SELECT track_id, count(*), sum(dur) FROM slice WHERE {condition} GROUP BY track_id"
    ):
        path: list[Any] = []
        above = track
        while above is not None:
            name, parent = parents[above]
            path.insert(0, (threads.get(above) or name or "").removesuffix(" (overlapping)"))
            above = parent
        key = (processes[track], *path)
        totals[key] = (totals[key][0] + count, totals[key][1] + duration)
    return dict(totals)


def table_totals(profile: Any, table: str, *track: str, condition: str = "TRUE") -> Totals:
    """(process number, track columns ...) -> (rows, sum of durations)."""
    columns = ", ".join(track)
    rows = profile.sql(
        f"SELECT p.process_id, {columns}, count(*), CAST(sum(end_ts - start_ts) AS BIGINT) FROM {table} t"
        f" JOIN ProcessInfo p ON p.process_idx = coalesce(t.process_idx, 0) WHERE {condition} GROUP BY ALL"
    ).fetchall()
    return {tuple(row[:-2]): (row[-2], row[-1]) for row in rows}


CORE = "'NeuronCore ' || coalesce(t.pcore_idx, 0)"
STREAM = "'stream ' || stream_index"
THREAD = "CASE thread_idx WHEN 0 THEN 'Main thread' ELSE 'Thread ' || thread_idx END"


def test_the_reader_has_nothing_to_complain_about(opened, opened_chrome):
    assert opened.ui.query(PROBLEMS) == []
    assert opened_chrome.ui.query(PROBLEMS) == []


def test_every_track_has_the_tables_slices_and_time(opened):
    expected = {
        **table_totals(opened.profile, "Instruction", CORE, "t.engine"),
        **table_totals(opened.profile, "DmaPacketAggregated", CORE, "'DMA queues'", "t.queue_name"),
        **table_totals(opened.profile, "HloInstruction", CORE, "'HLO'"),
        **table_totals(opened.profile, "CcOp", "'NeuronCore 0'", "'Collectives'", STREAM),
        **table_totals(opened.profile, "HostSpan", THREAD),
    }
    drawn = drawn_totals(opened.ui)

    assert {key: drawn.get(key) for key in expected} == expected


def test_framework_operations_are_exact_and_modules_stand_around_them(opened):
    operation = "extract_arg(arg_set_id, 'debug.id') IS NOT NULL"
    expected = table_totals(opened.profile, "FrameworkInstruction", CORE, "'Framework'")
    drawn = drawn_totals(opened.ui, operation)

    assert {key: drawn.get(key) for key in expected} == expected
    others = drawn_totals(opened.ui, f"NOT {operation}")
    assert sum(count for key, (count, _) in others.items() if key in expected) == opened.counts["modules"] > 0


def test_nothing_is_drawn_that_the_report_does_not_count(opened):
    ((slices,),) = opened.ui.query("SELECT count(*) FROM slice")
    ((unfinished,),) = opened.ui.query("SELECT count(*) FROM slice WHERE dur < 0")

    assert slices == opened.counts["slices"]
    assert unfinished == 0


def arrows(ui: PerfettoUi, argument: str) -> set[tuple[int, int]]:
    """(id of the source row, id of the target row) of each flow; `argument` is the slices' id."""
    source, target = (f"extract_arg({end}.arg_set_id, '{argument}')" for end in "ab")
    return set(
        ui.query(
            f"SELECT {source}, {target} FROM flow JOIN slice a ON a.id = slice_out"
            " JOIN slice b ON b.id = slice_in"
        )
    )


def test_every_edge_is_an_arrow_between_its_two_rows(opened):
    edges = set(opened.profile.sql("SELECT in_id, out_id FROM Flow").fetchall())

    assert arrows(opened.ui, "debug.id") == edges
    assert opened.ui.query("SELECT count(*) FROM flow") == [(opened.counts["flows"],)]


def test_chrome_arrows_are_right_wherever_the_format_is_unambiguous(opened_chrome):
    """Two slices of one thread that begin at the same instant cannot be told apart by a flow event."""
    edges = set(opened_chrome.profile.sql("SELECT in_id, out_id FROM Flow").fetchall())
    doubtful = {
        row[0]
        for row in opened_chrome.profile.sql(
            "SELECT a.id FROM Instruction a JOIN Instruction b ON a.process_idx = b.process_idx AND"
            " a.pcore_idx = b.pcore_idx AND a.engine = b.engine AND a.start_ts = b.start_ts AND a.id <> b.id"
        ).fetchall()
    }
    drawn = arrows(opened_chrome.ui, "args.id")

    assert {edge for edge in edges - drawn if not doubtful & set(edge)} == set()
    assert opened_chrome.ui.query("SELECT count(*) FROM flow") == [(opened_chrome.counts["flows"],)]


def test_every_sample_is_on_its_counter(opened):
    drawn = opened.ui.query(
        "SELECT t.name, count(*), sum(value) FROM counter JOIN counter_track t ON t.id = track_id GROUP BY 1"
    )
    tables = {
        "MFU": ("MfuUsage", "mfu"),
        "HBM bandwidth": ("HbmUsage", "current_throughput"),
        "DMA bandwidth": ("DmaUsage", "current_throughput"),
        "Pending DMA": ("PendingDma", "value"),
        "SBUF use": ("SbufUsage", "avg_util_percent"),
        "PSUM use": ("PsumUsage", "avg_util_percent"),
        "HBM bytes": ("SystemProfileHbmUsage", "total_bytes"),
    }
    assert len(drawn) >= 5
    for name, count, total in drawn:
        table, column = tables[name]
        rows, expected = opened.profile.sql(f"SELECT count(*), sum({column}) FROM {table}").fetchall()[0]
        assert count == rows
        assert total == pytest.approx(expected, rel=1e-12)


def test_lines_texts_and_numbers_arrive_as_they_are(opened):
    drawn = opened.ui.query(
        "SELECT extract_arg(arg_set_id, 'debug.id'), name, extract_arg(arg_set_id, 'debug.operands'),"
        " extract_arg(arg_set_id, 'debug.raw_flops'), extract_arg(arg_set_id, 'source.file_name'),"
        " extract_arg(arg_set_id, 'source.line_number') FROM slice"
        " WHERE extract_arg(arg_set_id, 'debug.operands') IS NOT NULL"
    )
    expected = opened.profile.sql(
        "SELECT id, opcode, operands, nullif(raw_flops, 0), source_file,"
        " CASE WHEN source_file IS NOT NULL THEN source_line END FROM Instruction WHERE operands <> ''"
    ).fetchall()

    assert sorted(drawn, key=lambda row: row[0]) == sorted(expected)


def test_the_tracks_are_on_the_screen(opened):
    numbers = {str(pid) for (pid,) in opened.ui.query("SELECT pid FROM process WHERE pid > 0")}

    assert numbers
    opened.ui.page.wait_for_function(ALL_ARE_WORDS, arg=sorted(numbers))


def test_chrome_json_has_the_same_slices_time_and_samples(opened_chrome):
    ui, counts = opened_chrome.ui, opened_chrome.counts
    ((slices,),) = ui.query("SELECT count(*) FROM slice")
    ((samples,),) = ui.query("SELECT count(*) FROM counter")
    threads = ui.query(
        "SELECT thread.name, count(*), sum(dur) FROM slice JOIN thread_track t ON t.id = track_id"
        " JOIN thread USING (utid) GROUP BY thread.name"
    )
    drawn = {name: (count, duration) for name, count, duration in threads}
    engines = opened_chrome.profile.sql(
        "SELECT engine, count(*), CAST(sum(end_ts - start_ts) AS BIGINT) FROM Instruction GROUP BY engine"
    ).fetchall()

    assert (slices, samples) == (counts["slices"], counts["counters"])
    assert {engine: drawn[engine] for engine, *_ in engines} == {e: (n, d) for e, n, d in engines}
