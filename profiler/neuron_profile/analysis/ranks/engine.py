# distributed has no types:
# mypy: disable-error-code="no-untyped-call"
"""Where the partial results are made: in this process, in several here, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from neuron_profile.analysis.ranks.job import Job, reduce_ranks
from neuron_profile.analysis.ranks.partial import RankKey, RankPartial, find_ranks, measure_rank
from neuron_tools.errors import NeuronToolsError, UsageError

if TYPE_CHECKING:
    from distributed import Client

ENGINES = ("local", "processes", "dask")
Progress = Callable[[int, int], None]


def summarise_job(
    paths: Sequence[str],
    engine: str = "local",
    *,
    workers: int = 2,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Job:
    """The ranks of some profiles, summarised: each where the engine puts it, then put together here.

    Args:
        paths: Profiles, one rank or many in each; local folders, or URLs of any fsspec file system.
        engine: One of `ENGINES`.
        workers: Processes of the engines "processes", and "dask" without a scheduler.
        scheduler: Address of a running Dask scheduler, "tcp://host:8786".
        progress: Called with the ranks done and all of them.

    Raises:
        NeuronToolsError: A profile cannot be opened, or the scheduler cannot be reached.
        UsageError: There is no such engine, or it takes no scheduler.
    """
    if engine not in ENGINES:
        raise UsageError(f"There is no engine {engine!r}: choose one of {', '.join(ENGINES)}.")
    if scheduler is not None and engine != "dask":
        raise UsageError("A scheduler's address goes with --engine dask.")
    keys = find_ranks(list(paths))
    results = {"local": _local, "processes": _processes, "dask": _dask}[engine](keys, workers, scheduler)
    return reduce_ranks(_counted(results, len(keys), progress))


def _counted(results: Iterator[RankPartial], count: int, progress: Progress | None) -> Iterator[RankPartial]:
    for done, partial in enumerate(results, 1):
        if progress is not None:
            progress(done, count)
        yield partial


def _local(keys: Sequence[RankKey], workers: int, scheduler: str | None) -> Iterator[RankPartial]:
    yield from map(measure_rank, keys)


def _processes(keys: Sequence[RankKey], workers: int, scheduler: str | None) -> Iterator[RankPartial]:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(measure_rank, keys)


def _dask(keys: Sequence[RankKey], workers: int, scheduler: str | None) -> Iterator[RankPartial]:
    with _client(workers, scheduler) as client:
        from distributed import as_completed

        futures = client.map(measure_rank, list(keys), pure=False)
        for batch in as_completed(futures, with_results=True).batches():
            for future, partial in batch:
                future.release()
                yield partial


def _client(workers: int, scheduler: str | None) -> Client:
    """A client of the running scheduler, or of a cluster of this machine's own that ends with it."""
    try:
        from distributed import Client
    except ImportError as error:
        raise NeuronToolsError("Dask is not installed: pip install 'neuron-tools[cluster]'.") from error
    if scheduler is None:
        options: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        return Client(**options)
    try:
        return Client(scheduler, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise NeuronToolsError(
            f"The Dask scheduler {scheduler} cannot be reached ({error}): check the address."
        ) from error
