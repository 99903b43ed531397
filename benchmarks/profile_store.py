"""The store of profiles: how fast and small it writes, what the index costs, how soon any range is drawn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from time import perf_counter, process_time, thread_time, time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figures import Figure, Peer, Target
from benchmarks.synthetic_profile import STEPS_PER_BLOCK, SyntheticRun, source_lines
from neuron_tools.frozen import frozen

if TYPE_CHECKING:
    from neuron_tools.profile.reader import Profile

QUICK_SPANS, SPANS = 3_000_000, 100_000_000
CORES = 2
PIXELS = 2000
RANGES, AGAIN = 200, 3


@frozen
class Written:
    """What writing a profile took; CPU times in seconds, memory above that of the process before it.

    The CPU time of making the rows is not counted, the wall time is.
    """

    spans: int
    write_cpu_s: float
    write_wall_s: float
    index_cpu_s: float
    peak_bytes: int
    table_bytes: int
    index_bytes: int
    instruction_bytes: int
    instructions: int
    plain_cpu_s: float


@frozen
class Opened:
    """What opening and drawing took, in seconds, and the memory of the process.

    Attributes:
        with_imports_s: From the start of the process until the first timeline.
        compiled_s: Until the compiled drawing was loaded, which the first timeline does not wait for.
        range_again_cpu_s: Of the same ranges, the best of three further times: what they cost without the
            disk and, mostly, without what else the machine does.
        folded_cpu_s: Of the same ranges with all depths of each track folded into one.
    """

    first_timeline_s: float
    first_timeline_cpu_s: float
    with_imports_s: float
    tracks: int
    compiled_s: float
    range_s: list[float]
    range_cpu_s: list[float]
    range_again_cpu_s: list[float]
    folded_cpu_s: list[float]
    peak_bytes: int


def run(quick: bool = False) -> list[Figure]:
    """All figures; `quick` takes a profile of three million spans in place of a hundred million."""
    spans = QUICK_SPANS if quick else SPANS
    folder = Path(tempfile.mkdtemp(prefix="neuron-tools-benchmark-"))
    try:
        written = Written(**_child("write", str(spans), str(folder / "run.nprof")))
        is_cold = _drop_cached(folder)
        opened = Opened(**_child("open", str(folder / "run.nprof"), str(time())))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [*writing_figures(written), *reading_figures(opened, written, is_cold)]


def writing_figures(written: Written) -> list[Figure]:
    """Figures of the writer and of building the index."""
    size = f"{written.spans / 1e6:.0f} M spans"
    rate = written.spans * CORES / written.write_cpu_s / 1e6
    plain = written.spans * CORES / written.plain_cpu_s / 1e6
    wall = written.spans / written.write_wall_s / 1e6
    cpu_note = f"{size}; from CPU time, as if two cores were free; wall: {wall:.2f}"
    instruction = written.instruction_bytes / written.instructions
    share = written.index_cpu_s / written.write_cpu_s
    return [
        Figure(
            "write", rate, "M spans/s on two cores", Target(">=", 5, "compiled"),
            Peer("pyarrow.parquet, zstd, unsorted, no index", plain), cpu_note,
        ),
        Figure("instruction table", instruction, "B/span", Target("<=", 12)),
        Figure("all tables", written.table_bytes / written.spans, "B/span"),
        Figure("timeline index", written.index_bytes / written.spans, "B/span"),
        Figure("cost of the index", share, "of the write time", Target("<=", 0.25), note="CPU time"),
        Figure("memory of the writer", written.peak_bytes / 2**20, "MiB", Target("<=", 256),
               note="private memory above the process before"),
    ]  # fmt: skip


def reading_figures(opened: Opened, written: Written, is_cold: bool) -> list[Figure]:
    """Figures of opening a profile and drawing it."""
    size = f"{written.spans / 1e6:.0f} M spans, {opened.tracks} tracks, {PIXELS} px"
    state = (
        "the profile not in the system's cache" if is_cold else "the system's cache cannot be emptied here"
    )
    values = (opened.range_s, opened.range_cpu_s, opened.range_again_cpu_s, opened.folded_cpu_s)
    wall_ms, cpu_ms, again_ms, folded_ms = (float(np.percentile(value, 95)) * 1e3 for value in values)
    compiled = f"all tracks; {RANGES} ranges; loading the compiled drawing took {opened.compiled_s:.2f} s"
    note = f"from the start of the process, {state}; {size}"
    return [
        Figure("open and first timeline", opened.with_imports_s, "s", Target("<=", 1, "python"), note=note),
        Figure("open and first timeline without the imports", opened.first_timeline_s, "s"),
        Figure("open and first timeline without the imports, CPU time", opened.first_timeline_cpu_s, "s"),
        Figure("any range, p95", wall_ms, "ms", Target("<=", 20, "compiled"), note=compiled),
        Figure("any range, p95 of CPU time", cpu_ms, "ms"),
        Figure("any range again, p95 of CPU time", again_ms, "ms", note=f"best of {AGAIN}"),
        Figure("any range, depths folded, p95 of CPU time", folded_ms, "ms"),
        Figure("memory of the reader", opened.peak_bytes / 2**20, "MiB", Target("<=", 1024)),
    ]


def write(spans: int, directory: Path) -> Written:
    """Write a profile of at least that many spans, as fast as the rows can be appended."""
    from neuron_tools.profile import writer

    source = SyntheticRun()
    index = [0.0, 0.0]
    build = writer.open_index

    def timed(*arguments: Any) -> Any:
        cpu, wall = process_time(), perf_counter()
        built = build(*arguments)
        index[0], index[1] = process_time() - cpu, perf_counter() - wall
        return built

    written = made = 0
    # Flushes come by the writer's own time, so that other work on the machine does not add any.
    clock = SimpleNamespace(monotonic=lambda: process_time() / CORES)
    timing = mock.patch.multiple(writer, open_index=timed, time=clock)
    with _PeakMemory() as memory, timing:
        cpu, wall, making = process_time(), perf_counter(), -thread_time()
        target = writer.ProfileWriter(directory, {"target": "trn2"})
        for table, columns in source_lines():
            target.append(table, columns)
        for table, columns in source.blocks(spans):
            making += thread_time()
            target.append(table, columns)
            written += len(columns["process_idx"])
            made += len(columns["process_idx"]) if table == "Instruction" else 0
            making -= thread_time()
        making += thread_time()
        target.close(complete=True)
        cpu, wall = process_time() - cpu - index[0] - making, perf_counter() - wall - index[1]
    sizes = {path.name: _bytes(path) for path in directory.iterdir()}
    return Written(
        written, cpu, wall, index[0], memory.peak_bytes, sum(sizes.values()) - sizes["timeline"],
        sizes["timeline"], sizes["Instruction"], made, _plain_write(source, written),
    )  # fmt: skip


def _plain_write(source: SyntheticRun, spans: int) -> float:
    """CPU seconds that pyarrow alone takes for that many spans, extrapolated from a block of each table."""
    taken, rows = 0.0, 0
    for table in ("Instruction", "DmaPacketAggregated", "HloInstruction", "FrameworkInstruction", "HostSpan"):
        block = pa.table(source.block(table, 0, STEPS_PER_BLOCK))
        cpu = process_time()
        pq.write_table(block, pa.BufferOutputStream(), compression="zstd")
        taken, rows = taken + process_time() - cpu, rows + block.num_rows
    return taken * spans / rows


def open_and_draw(directory: Path, started: float) -> Opened:
    """Open a profile, draw all of it, then ranges of any length anywhere.

    Args:
        started: When this process was started, in seconds since 1970.
    """
    from neuron_tools import open_profile
    from neuron_tools.profile.timeline.drawing import DRAW_KERNEL

    begin, begin_cpu = perf_counter(), process_time()
    profile = open_profile(directory)
    tracks = profile.tracks()
    profile.timelines(pixels=PIXELS)
    first, first_cpu, with_imports = perf_counter(), process_time() - begin_cpu, time() - started
    DRAW_KERNEL.wait()
    compiled = perf_counter() - first
    start, end = profile.time_range_ns()
    random = np.random.default_rng(0)
    wall, cpu, again, folded = [], [], [], []
    for exponent in random.uniform(-6, 0, RANGES):
        length = max(int((end - start) * 10**exponent), PIXELS)
        low = int(random.integers(start, end - length + 1))
        at, cpu_at = perf_counter(), process_time()
        profile.timelines(None, low, low + length, PIXELS)
        wall.append(perf_counter() - at)
        cpu.append(process_time() - cpu_at)
        again.append(min(_draw_cpu_s(profile, low, low + length) for _ in range(AGAIN)))
        folded.append(_draw_cpu_s(profile, low, low + length, depths=0, relative=True))
    peak = _status_bytes("VmHWM")
    return Opened(
        first - begin, first_cpu, with_imports, len(tracks), compiled, wall, cpu, again, folded, peak
    )


def _draw_cpu_s(profile: Profile, start_ns: int, end_ns: int, **options: Any) -> float:
    cpu = process_time()
    profile.timelines(None, start_ns, end_ns, PIXELS, **options)
    return process_time() - cpu


class _PeakMemory:
    """The most private memory that a process gets inside a `with` statement, above what it had before."""

    def __enter__(self) -> _PeakMemory:
        self.peak_bytes, self._base = 0, _status_bytes("RssAnon")
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.peak_bytes = max(self.peak_bytes, _status_bytes("RssAnon") - self._base)


def _status_bytes(name: str) -> int:
    """A line of /proc/self/status, in bytes; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def _drop_cached(folder: Path) -> bool:
    """Make the system forget what it holds of the files in a folder; whether it can be asked to."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())


def _child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.profile_store", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    """What `run` does in a process of its own: `write SPANS DIRECTORY` or `open DIRECTORY STARTED`."""
    if sys.argv[1] == "write":
        result: Written | Opened = write(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        result = open_and_draw(Path(sys.argv[2]), float(sys.argv[3]))
    print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main()
