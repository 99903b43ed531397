"""The ranks of a job summarised: each where the engine puts it, then put together here."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_profile.analysis.ranks.job import Job, reduce_ranks
from neuron_profile.analysis.ranks.partial import find_ranks, measure_rank
from neuron_profile.analysis.ranks.spread import Engine, Progress, spread


def summarise_job(
    paths: Sequence[str],
    engine: str = "local",
    *,
    workers: int = 2,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Job:
    """The ranks of some profiles, summarised.

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
    where = Engine(engine, workers, scheduler)
    keys = find_ranks(list(paths))
    return reduce_ranks(partial for _, partial in spread(measure_rank, keys, where, progress))
