#!/usr/bin/env python3
"""Opens public traces of many tools and compares what was read with an independent count.

The traces stand in no package: `scripts/public_traces.json` names repository, commit, path and kind of each.
`scripts/public_traces.py collect CLONES` copies them from git clones (CLONES/OWNER+NAME, bare or not) to the
folder that NEURON_TOOLS_PUBLIC_TRACES names; `scripts/public_traces.py check` imports each one, counts its
events with the small readers below, and asks for the summary's first sentence. With `--write` the results
replace those in docs/public-traces.md. The exit status is 1 if a trace failed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "public_traces.json"
PAGE = ROOT / "docs" / "public-traces.md"
MARK = "<!-- results -->"
FOLDER_VARIABLE = "NEURON_TOOLS_PUBLIC_TRACES"
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class PublicTrace:
    """A trace in a public repository."""

    repository: str
    commit: str
    path: str
    kind: str

    def file(self, folder: Path) -> Path:
        """Where it stands below the folder of traces."""
        return folder / self.repository.replace("/", "+") / self.path


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that a trace must become: spans and samples of counters."""

    spans: int
    samples: int


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one trace; `fault` is empty where everything fits."""

    trace: PublicTrace
    rows: Rows
    headline: str
    seconds: float
    fault: str


def traces() -> list[PublicTrace]:
    """The list."""
    return [PublicTrace(**entry) for entry in json.loads(LIST.read_text())]


def content(path: Path) -> bytes:
    """A file, unpacked."""
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data


def count_events(path: Path) -> Rows:
    """Spans and samples in a JSON document of trace events.

    Complete events, instants and begins are spans; each number of a counter is a sample, and so are the two
    sums in each of torch.profiler's memory events.
    """
    document = json.loads(content(path))
    events = document if isinstance(document, list) else document["traceEvents"]
    spans = samples = 0
    for event in events:
        phase = event.get("ph") if isinstance(event, dict) else None
        if phase is None or not _is_number(event.get("ts")):
            continue
        spans += phase in "XBbSnTpiIRPNODvVc"
        arguments = event.get("args") or {}
        if phase == "C":
            samples += sum(_is_number(value) for value in arguments.values())
        elif event.get("name") == "[memory]" and phase in "iX":
            samples += sum(key in arguments for key in ("Total Allocated", "Total Reserved"))
    return Rows(spans, samples)


def count_rocprofiler(path: Path) -> Rows:
    """Records with a time in rocprofiler-sdk's JSON."""
    spans = 0
    for process in json.loads(content(path))["rocprofiler-sdk-tool"]:
        for records in process["buffer_records"].values():
            spans += sum("start_timestamp" in record for record in records)
    return Rows(spans, 0)


def count_csv(path: Path) -> Rows:
    """Lines after the first."""
    lines = list(csv.reader(content(path).decode().splitlines()))
    return Rows(sum(map(bool, lines[1:])), 0)


def count_memory(path: Path) -> Rows:
    """Two samples an event: of its category, and of the sum."""
    return Rows(0, 2 * len(json.loads(content(path))))


NSYS_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "PROFILER_OVERHEAD", "OSRT_API", "NVTX_EVENTS",
)  # fmt: skip


def count_nsys(path: Path) -> Rows:
    """Rows of the tables of work, calls and ranges in an export of Nsight Systems."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return Rows(sum(_count(database, name, "*") for name in NSYS_TABLES), 0)


def _count(database: sqlite3.Connection, table: str, column: str) -> int:
    """Values in a column of a table that may be lacking."""
    found = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    if not database.execute(found, [table]).fetchone()[0]:
        return 0
    return int(database.execute(f"SELECT count({column}) FROM {table}").fetchone()[0])


ASCEND_SPANS = ("TASK", "COMMUNICATION_OP", "CANN_API", "PYTORCH_API", "MSTX_EVENTS", "STEP_TIME")
ASCEND_SAMPLES = {
    "MEMORY_RECORD": ("totalAllocated", "totalReserved"), "NPU_MEM": ("hbm", "ddr"), "AICORE_FREQ": ("freq",),
}  # fmt: skip


def count_ascend(path: Path) -> Rows:
    """Rows of the tables of tasks, calls and steps in an Ascend profiler's database; its samples."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        spans = sum(_count(database, name, "startNs") for name in ASCEND_SPANS)
        columns = [(name, column) for name, each in ASCEND_SAMPLES.items() for column in each]
        return Rows(spans, sum(_count(database, *column) for column in columns))


def count_rpd(path: Path) -> Rows:
    """Operations and calls in a database of ROCm Profile Data; what was watched."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content(path))
        file.flush()
        with closing(sqlite3.connect(f"file:{file.name}?mode=ro", uri=True)) as database:
            operations, calls, watched = (
                database.execute(f"SELECT count(start) FROM rocpd_{name}").fetchone()[0]
                for name in ("op", "api", "monitor")
            )
    return Rows(operations + calls, watched)


class PlainPickle(pickle.Unpickler):
    """Loads lists, dictionaries, texts and numbers alone."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuses everything else."""
        raise pickle.UnpicklingError(f"{module}.{name}")


def count_snapshot(path: Path) -> Rows:
    """Events of a memory snapshot, and the changes of what is allocated and reserved by device."""
    with path.open("rb") as file:
        snapshot = PlainPickle(file).load()
    traces = dict(enumerate(snapshot["device_traces"]))
    devices = {segment["device"] for segment in snapshot["segments"]}
    devices |= {device for device, events in traces.items() if events}
    changing = {"alloc", "free_requested", "segment_alloc", "segment_free", "segment_map", "segment_unmap"}
    events = [event for found in traces.values() for event in found]
    changes = sum(event["action"] in changing and event["size"] > 0 for event in events)
    return Rows(len(events), changes + 2 * len(devices))


def count_pprof(path: Path) -> Rows:
    """Frames that begin as the stacks of a pprof profile stand side by side in order; or holders of bytes."""
    profile = _fields_by_number(content(path))
    texts = [text.decode(errors="replace") for text in profile[6]]
    units = [texts[_one(kind, 2)] for kind in profile[1]]
    functions = {_one(each, 1): (texts[_one(each, 2)], texts[_one(each, 4)]) for each in profile[5]}
    places = {_one(each, 1): _frames_of(each, functions) for each in profile[4]}
    stacks, values = [], []
    for sample in profile[2]:
        found = _fields_by_number(sample)
        stacks.append([frame for place in reversed(_packed(found[1])) for frame in places.get(place, [])])
        values.append(_packed(found[2]))
    timed = [place for place, unit in enumerate(units) if unit in ("nanoseconds", "microseconds", "seconds")]
    if not timed and "bytes" in units:
        return Rows(
            0, sum(_holders(stacks, values, place) for place, unit in enumerate(units) if unit == "bytes")
        )
    return Rows(_side_by_side(stacks, [each[timed[-1]] if timed else each[0] for each in values]), 0)


def _holders(stacks: list[list[Any]], values: list[list[int]], place: int) -> int:
    held: Counter[str] = Counter()
    for stack, value in zip(stacks, values):
        held[stack[-1][0] if stack else ""] += value[place]
    count = sum(value != 0 for value in held.values())
    return min(count, 201) + 1


def _side_by_side(stacks: list[list[Any]], values: list[int]) -> int:
    """Calls of the stacks that were seen, in the order of their frames' first appearance."""
    number: dict[Any, int] = {}
    for stack in stacks:
        for frame in stack:
            number.setdefault(frame, len(number))
    before: list[Any] = []
    calls = 0
    for stack, value in sorted(zip(stacks, values), key=lambda pair: [number[frame] for frame in pair[0]]):
        if value > 0:
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, stack)))
            calls, before = calls + len(stack) - shared, stack
    return calls


def _frames_of(location: bytes, functions: dict[int, tuple[str, str]]) -> list[Any]:
    found = _fields_by_number(location)
    lines = [(*functions.get(_one(line, 1), ("", "")), _one(line, 2)) for line in found[4]]
    return lines[::-1] or [(f"{_one(location, 3):#x}", "", 0)]


def _packed(values: list[Any]) -> list[int]:
    numbers: list[int] = []
    for value in values:
        position = 0
        while isinstance(value, bytes) and position < len(value):
            number, position = _varint(value, position)
            numbers.append(number)
        if isinstance(value, int):
            numbers.append(value)
    return numbers


def _one(message: bytes, number: int) -> int:
    return next((value for field, value in _fields(message) if field == number and isinstance(value, int)), 0)


def _fields_by_number(message: bytes) -> defaultdict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for number, value in _fields(message):
        found[number].append(value)
    return found


def count_execution_trace(path: Path) -> Rows:
    """Nodes that stand for an operator or an annotation, not for the process or a thread."""
    nodes = json.loads(content(path))["nodes"]
    return Rows(sum(not node["name"].startswith("[pytorch|profiler|execution_") for node in nodes), 0)


def count_xplane(path: Path) -> Rows:
    """Events on the lines of the planes of an XSpace."""
    planes = _messages(content(path), 1)
    events = [_messages(line, 4) for plane in planes for line in _messages(plane, 3)]
    return Rows(sum(map(len, events)), 0)


def count_perfetto(path: Path) -> Rows:
    """Track events that begin or are instants, and those that are samples."""
    kinds: Counter[int] = Counter()
    for packet in _messages(content(path), 1):
        for event in _messages(packet, 11):
            kinds.update(value for field, value in _fields(event) if field == 9 and isinstance(value, int))
    return Rows(kinds[1] + kinds[3], kinds[4])


COUNTERS: dict[str, Callable[[Path], Rows]] = {
    "rocprofiler-sdk JSON": count_rocprofiler,
    "rocprofiler CSV": count_csv,
    "memory timeline": count_memory,
    "memory snapshot": count_snapshot,
    "pprof": count_pprof,
    "execution trace": count_execution_trace,
    "Ascend database": count_ascend,
    "Nsight Systems SQLite": count_nsys,
    "ROCm Profile Data": count_rpd,
    "XPlane": count_xplane,
    "Perfetto": count_perfetto,
}
"""By the beginning of the kind; everything else is trace events in JSON."""


def expected(trace: PublicTrace, folder: Path) -> Rows:
    """The independent count of a trace."""
    counters = [count for kind, count in COUNTERS.items() if trace.kind.startswith(kind)]
    return (counters[0] if counters else count_events)(trace.file(folder))


def check(trace: PublicTrace, folder: Path, scratch: Path) -> Result:
    """Imports a trace and compares what was read with the independent count."""
    from neuron_profile.analysis.traces.overview import look_at_trace
    from neuron_profile.reports.trace_text import trace_verdict
    from neuron_tools.profile.importers import import_traces
    from neuron_tools.profile.reader import open_profile

    begin = time.process_time()
    report = import_traces([trace.file(folder)], scratch / "trace.nprof", force=True)
    seconds = time.process_time() - begin
    rows = Rows(report.rows.get("TraceSpan", 0), report.rows.get("TraceCounter", 0))
    with open_profile(scratch / "trace.nprof") as profile:
        overview = look_at_trace(profile)
    headline = trace_verdict(overview) if overview is not None else ""
    wanted = expected(trace, folder)
    faults = [] if rows == wanted else [f"{rows} instead of {wanted}"]
    faults += [] if headline else ["no headline"]
    return Result(trace, rows, headline, seconds, "; ".join(faults))


def check_all(folder: Path) -> Iterator[Result]:
    """Every trace of the list; one that raises is a result with its fault."""
    for trace in traces():
        with tempfile.TemporaryDirectory() as scratch:
            try:
                yield check(trace, folder, Path(scratch))
            except Exception as error:
                fault = f"{type(error).__name__}: {error}".replace(str(folder), "")
                yield Result(trace, Rows(0, 0), "", 0.0, fault)


def collect(clones: Path, folder: Path) -> None:
    """Copies the traces from git clones."""
    for trace in traces():
        target = trace.file(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        clone = clones / trace.repository.replace("/", "+")
        clone = clone / "repo" if (clone / "repo").is_dir() else clone
        blob = f"{trace.commit}:{trace.path}"
        with target.open("wb") as file:
            subprocess.run(["git", "-C", str(clone), "cat-file", "blob", blob], stdout=file, check=True)


def table(results: list[Result]) -> str:
    """The results as Markdown."""
    lines = ["| kind | trace | spans | samples | the summary begins |", "|---|---|---|---|---|"]
    for result in results:
        trace = result.trace
        link = f"https://github.com/{trace.repository}/blob/{trace.commit}/{trace.path}"
        name = f"[{trace.repository}: {Path(trace.path).parent.name}/{Path(trace.path).name}]({link})"
        headline = result.fault or result.headline.replace("|", "\\|")
        lines.append(
            f"| {trace.kind} | {name} | {result.rows.spans:,} | {result.rows.samples:,} | {headline} |"
        )
    kinds = len({result.trace.kind for result in results})
    good = sum(not result.fault for result in results)
    seconds = sum(result.seconds for result in results)
    rows = sum(result.rows.spans + result.rows.samples for result in results)
    head = f"{good} of {len(results)} traces of {kinds} kinds opened with equal counts: {rows:,} rows in"
    return "\n".join([f"{head} {seconds:.1f} s of CPU.", "", *lines, ""])


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protobuf message by number."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield tag >> 3, value
        elif kind == 2:
            length, position = _varint(data, position)
            yield tag >> 3, data[position : position + length]
            position += length
        else:
            width = {1: 8, 5: 4}[kind]
            yield tag >> 3, data[position : position + width]
            position += width


def _messages(data: bytes, number: int) -> list[bytes]:
    return [value for field, value in _fields(data) if field == number and isinstance(value, bytes)]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def main() -> int:
    """Runs a command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("collect").add_argument("clones", type=Path)
    commands.add_parser("check").add_argument("--write", action="store_true")
    options = parser.parse_args()
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        print(f"Set {FOLDER_VARIABLE} to the folder of the traces.", file=sys.stderr)
        return 2
    if options.command == "collect":
        collect(options.clones, Path(folder))
        return 0
    results = []
    for result in check_all(Path(folder)):
        print(f"{'FAILED' if result.fault else 'ok':6} {result.trace.path} {result.fault}", flush=True)
        results.append(result)
    if options.write:
        PAGE.write_text(PAGE.read_text().split(MARK)[0] + f"{MARK}\n\n" + table(results))
    return 1 if any(result.fault for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
