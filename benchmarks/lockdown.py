"""What it costs that foreign queries and traces are read by processes that may do nothing else."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, median
from time import perf_counter, process_time
from typing import TypeVar

import psutil

from benchmarks import kineto_trace
from benchmarks.figures import Figure, Target

EVENTS, QUICK_EVENTS = 400_000, 50_000
IMPORTS, QUICK_IMPORTS = 7, 3
QUERIES, QUICK_QUERIES = 300, 50
MOST_MS, MOST_RATIO = 5.0, 1.05
TIMEOUT_S = 60.0
SQL = "SELECT name, count(*) AS n, sum(end_ts - start_ts) AS ns FROM TraceSpan GROUP BY name ORDER BY ns DESC"
IMPORT = (
    "import sys; from neuron_profile.cli import neuron_profile; from neuron_tools.command_line import run; "
    "sys.exit(run(neuron_profile, 'neuron-profile', sys.argv[2:], is_whole_process=sys.argv[1] == 'locked'))"
)

Value = TypeVar("Value")


def run(quick: bool) -> list[Figure]:
    """Imports a trace and queries it, with and without."""
    with tempfile.TemporaryDirectory(prefix="neuron-lockdown-") as name:
        trace, profile = Path(name) / "trace.json", Path(name) / "trace.nprof"
        kineto_trace.write(trace, QUICK_EVENTS if quick else EVENTS)
        import_s = _in_turn(
            {how: partial(_import, how, trace, profile) for how in ("locked", "free")},
            QUICK_IMPORTS if quick else IMPORTS,
        )
        query_ms = _query_ms(profile, QUICK_QUERIES if quick else QUERIES)
    return [_import_figure(import_s), *_query_figures(query_ms)]


def _in_turn(candidates: dict[str, Callable[[], Value]], rounds: int) -> dict[str, list[Value]]:
    """What each says, round after round; the first round warms up and is not counted."""
    told: dict[str, list[Value]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        for name, measure in candidates.items():
            value = measure()
            if number:
                told[name].append(value)
    return told


def _import(how: str, trace: Path, profile: Path) -> float:
    """Time of the processors of an import, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", IMPORT, how, "import", str(trace), "-o", str(profile), "--force"]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _query_ms(path: Path, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds of a query by the clock and of the processors, in a process of its own and in this one."""
    from neuron_tools.profile.reader import open_profile

    def timed(timeout_s: float | None) -> tuple[float, float]:
        used = _processors_s()
        began = perf_counter()
        profile.query(SQL, timeout_s=timeout_s)
        clock_s = perf_counter() - began
        return clock_s * 1e3, (_processors_s() - used) * 1e3

    with open_profile(path) as profile:
        return _in_turn({"locked": lambda: timed(TIMEOUT_S), "free": lambda: timed(None)}, rounds)


def _processors_s() -> float:
    """What this process and those that it started have used of the processors."""
    children = [child.cpu_times() for child in psutil.Process().children()]
    return process_time() + sum(times.user + times.system for times in children)


def _import_figure(told: dict[str, list[float]]) -> Figure:
    ratio = median(locked / free for locked, free in zip(told["locked"], told["free"]))
    medians = f"{median(told['locked']):.2f} s locked down, {median(told['free']):.2f} s not"
    note = f"of the processors' time, median of {len(told['free'])} pairs: {medians}"
    return Figure("import, locked down", ratio, "of free", Target("<=", MOST_RATIO), None, note)


def _query_figures(told: dict[str, list[tuple[float, float]]]) -> list[Figure]:
    (locked_ms, used_locked_ms), (free_ms, used_ms) = (list(zip(*told[how])) for how in ("locked", "free"))
    note = f"medians of {len(free_ms)}: {median(locked_ms):.1f} ms, {median(free_ms):.1f} ms here"
    used = f"means of {len(free_ms)}: {fmean(used_locked_ms):.1f} ms, {fmean(used_ms):.1f} ms here"
    most = Target("<=", MOST_MS)
    return [
        Figure("query, added by its process", median(locked_ms) - median(free_ms), "ms", most, None, note),
        Figure(
            "query, added time of the processors", fmean(used_locked_ms) - fmean(used_ms), "ms", most, None,
            f"{used}; where others use the machine too, this tells more",
        ),
    ]  # fmt: skip
