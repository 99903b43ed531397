# distributed has no types:
# mypy: disable-error-code="no-untyped-call"
"""Work on many ranks, one function for each: in this process, in several here, or on a Dask cluster.

A Dask worker that is lost loses nothing: the scheduler has what it held done again by another. What is done
for a rank must therefore leave the same behind when it is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.frozen import frozen

if TYPE_CHECKING:
    from distributed import Client

ENGINES = ("local", "processes", "dask")
Progress = Callable[[int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


@frozen
class Engine:
    """Where the work is done.

    Attributes:
        name: One of `ENGINES`.
        workers: Processes of "processes", and of "dask" without a scheduler.
        scheduler: Address of a running Dask scheduler, "tcp://host:8786".

    Raises:
        UsageError: There is no such engine, or it takes no scheduler.
    """

    name: str = "local"
    workers: int = 2
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise UsageError(f"There is no engine {self.name!r}: choose one of {', '.join(ENGINES)}.")
        if self.scheduler is not None and self.name != "dask":
            raise UsageError("A scheduler's address goes with --engine dask.")


def spread(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    engine: Engine,
    progress: Progress | None = None,
) -> Iterator[tuple[int, Result]]:
    """Apply a function to each item where the engine puts it.

    Args:
        function: Of a module, so that other processes find it.
        progress: Called with the items done and all of them.

    Returns:
        Place and result of each item, as they come.

    Raises:
        NeuronToolsError: As `function`; or the scheduler cannot be reached, or workers die at an item.
    """
    run: Callable[..., Iterator[tuple[int, Result]]] = {
        "local": _local, "processes": _processes, "dask": _dask,
    }[engine.name]  # fmt: skip
    for done, pair in enumerate(run(function, items, engine), 1):
        if progress is not None:
            progress(done, len(items))
        yield pair


def in_order(pairs: Iterator[tuple[int, Result]]) -> list[Result]:
    """The results by place."""
    return [result for _, result in sorted(pairs, key=lambda pair: pair[0])]


def _local(
    function: Callable[[Item], Result], items: Sequence[Item], engine: Engine
) -> Iterator[tuple[int, Result]]:
    yield from enumerate(map(function, items))


def _processes(
    function: Callable[[Item], Result], items: Sequence[Item], engine: Engine
) -> Iterator[tuple[int, Result]]:
    with ProcessPoolExecutor(engine.workers, mp_context=get_context("spawn")) as pool:
        yield from enumerate(pool.map(function, items))


def _dask(
    function: Callable[[Item], Result], items: Sequence[Item], engine: Engine
) -> Iterator[tuple[int, Result]]:
    with _client(engine) as client:
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        futures = client.map(function, list(items), pure=False)
        place_of = {future.key: place for place, future in enumerate(futures)}
        try:
            for batch in as_completed(futures, with_results=True).batches():
                for future, result in batch:
                    future.release()
                    yield place_of[future.key], result
        except KilledWorker as error:
            raise NeuronToolsError(
                f"{error.allowed_failures + 1} Dask workers were lost one after the other at the same rank: "
                "give them more memory (dask worker --memory-limit)."
            ) from error


def _client(engine: Engine) -> Client:
    """A client of the running scheduler, or of a cluster of this machine's own that ends with it."""
    try:
        from distributed import Client
    except ImportError as error:
        raise NeuronToolsError("Dask is not installed: pip install 'neuron-tools[cluster]'.") from error
    if engine.scheduler is None:
        options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None}
        return Client(n_workers=engine.workers, **options)
    try:
        return Client(engine.scheduler, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise NeuronToolsError(
            f"The Dask scheduler {engine.scheduler} cannot be reached ({error}): check the address."
        ) from error
