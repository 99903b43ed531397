# distributed has no types:
# mypy: disable-error-code="no-untyped-call"
"""A job's torch.profiler traces on two Dask workers: what analyses cost, their memory, a worker killed.

A few different traces are made and imported; links to them stand as the ranks of a large job, each of which
is read anew. Loading libraries and compiling kernels, which a worker does once, happens before.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

from benchmarks import training_trace
from benchmarks.figures import Figure, Target
from neuron_profile.analysis.ranks.spread import Engine

if TYPE_CHECKING:
    from distributed import Client

EVENTS, QUICK_EVENTS = 1_000_000, 40_000
RANKS, QUICK_RANKS = 200, 6
DISTINCT = 4
WORKERS, MEMORY_LIMIT = 2, "1GiB"
NAMES = ("idle", "kernels", "queue", "roofline", "critical-path", "communication", "advice")
MIB = 1 << 20
MOST_SECONDS, MOST_MIB = Target("<=", 1.5), Target("<=", 1024)
Progress = Callable[[int, int], None]


@dataclass
class _Use:
    """What the workers used for some work, and its result.

    Attributes:
        cpu_s: Processor time of all workers together.
        peak_bytes: Most memory that one of them has held by then.
    """

    result: Any
    cpu_s: float
    peak_bytes: int


@dataclass
class _Killer:
    """Kills a worker once some of the ranks are done.

    Attributes:
        after: Ranks done before.
        killed: Process ids of those that were killed.
    """

    client: Client
    after: int
    killed: list[int] = field(default_factory=list)

    def __call__(self, done: int, count: int) -> None:
        """Told how many ranks are done."""
        if done >= self.after and not self.killed:
            self.killed.append(next(iter(self.client.run(os.getpid).values())))
            os.kill(self.killed[0], signal.SIGKILL)


def run(quick: bool = False) -> list[Figure]:
    """The figures of a job's traces."""
    events, ranks = (QUICK_EVENTS, QUICK_RANKS) if quick else (EVENTS, RANKS)
    with tempfile.TemporaryDirectory(prefix="neuron-benchmark-") as name:
        paths = make_job(Path(name), ranks, events)
        with _cluster() as (client, engine):
            figures = _measured(client, engine, paths, events)
            if quick:  # the fixed cost of a rank tells nothing there
                return [Figure(each.name, each.value, each.unit, note=each.note) for each in figures]
            return figures


def make_job(folder: Path, ranks: int, events: int) -> list[str]:
    """Profiles of so many ranks, `DISTINCT` of them different and the others links to these."""
    from neuron_profile.analysis.ranks.imports import RankImport, import_ranks

    imports = []
    for number in range(min(DISTINCT, ranks)):
        trace = folder / f"trace{number}.json"
        training_trace.write(trace, events, seed=number)
        imports.append(RankImport(str(trace), str(folder / f"trace{number}.nprof")))
    import_ranks(imports, Engine())
    for number in range(ranks):
        (folder / f"rank{number}.nprof").symlink_to(imports[number % len(imports)].profile)
    return [str(folder / f"rank{number}.nprof") for number in range(ranks)]


@contextmanager
def _cluster() -> Iterator[tuple[Client, Engine]]:
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, memory_limit=MEMORY_LIMIT) as cluster, Client(cluster) as client:
        yield client, Engine("dask", scheduler=cluster.scheduler_address)


def _measured(client: Client, engine: Engine, paths: list[str], events: int) -> list[Figure]:
    from neuron_profile.analysis.ranks.analyses import analyse_ranks
    from neuron_profile.analysis.ranks.differences import compare_ranks
    from neuron_profile.analysis.ranks.engine import summarise_job

    analyse = partial(analyse_ranks, paths, NAMES, engine)
    pairs = paths[: max(2, len(paths) // 10)]
    compare = partial(compare_ranks, [*pairs[1:], pairs[0]], pairs, engine)
    analyse_ranks(paths[: 2 * WORKERS], NAMES, engine)
    whole = _used(client, analyse)
    summary = _used(client, partial(summarise_job, paths, "dask", scheduler=engine.scheduler))
    difference = _used(client, compare)
    killer = _Killer(client, len(paths) // 3)
    again = analyse(killer)
    lost = sum(one != other for one, other in zip(whole.result, again, strict=True))
    million = events * len(paths) / 1e6
    job = f"{len(paths)} ranks of {events:,} events"
    note = (
        f"of {WORKERS} Dask workers, a million events, after import; {', '.join(NAMES)}; "
        f"{min(DISTINCT, len(paths))} different traces taken in turn"
    )
    pair_million = 2 * events * len(pairs) / 1e6
    return [
        Figure(f"processor time, {job}", whole.cpu_s / million, "s", MOST_SECONDS, note=note),
        Figure(f"processor time, summary of {job}", summary.cpu_s / million, "s", MOST_SECONDS),
        Figure(
            f"processor time, {len(pairs)} ranks compared with others", difference.cpu_s / pair_million, "s",
            MOST_SECONDS, note="a million events of the two traces",
        ),
        Figure(f"memory of a worker, {job}", whole.peak_bytes / MIB, "MiB", MOST_MIB),
        Figure(
            "ranks that differ after a worker was killed", lost, "", Target("<=", 0),
            note=f"{len(killer.killed)} killed when {killer.after} of {len(paths)} ranks were done",
        ),
    ]  # fmt: skip


def _used(client: Client, work: Callable[[], Any]) -> _Use:
    """Do some work on the workers; none may be lost."""
    before = client.run(process_time)
    result = work()
    after = client.run(process_time)
    peaks = client.run(peak_bytes)
    return _Use(result, sum(after[each] - before[each] for each in after), max(peaks.values()))


def peak_bytes() -> int:
    """Most memory that this process has held since it was started."""
    with open("/proc/self/status") as stream:
        line = next(line for line in stream if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


if __name__ == "__main__":
    for figure in run("--quick" in sys.argv):
        print(figure)
