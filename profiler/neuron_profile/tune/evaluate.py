"""Measures many kernels at once in processes of their own, each with a deadline."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as DeadlineError
from contextlib import contextmanager
from typing import Any

from pebble import ProcessExpired, ProcessPool

from neuron_profile.tune.measurement import Arrays, Candidate, Measurement, Refusal
from neuron_profile.tune.worker import Job, measure, prepare

MEMORY_BYTES = 16 << 30
TIMEOUT_S = 60.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Evaluator:
    """Worker processes that measure candidates of one job; use it in a `with` statement.

    A candidate that hangs is ended at its deadline, one that crashes costs its own process only.

    Args:
        workers: Processes; None = one for each CPU.
        timeout_s: Deadline of one candidate.
        memory_bytes: Address space of a process.
    """

    def __init__(
        self,
        job: Job,
        *,
        workers: int | None = None,
        timeout_s: float = TIMEOUT_S,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._timeout_s = timeout_s
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["neuron_profile.tune.worker"])
        self._pool = ProcessPool(
            max_workers=self.workers, initializer=prepare, initargs=(job, memory_bytes), context=context
        )

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.stop()
        self._pool.join()

    def measure(
        self, candidates: Sequence[Candidate], *, values: bool = True, keep_outputs: bool = False
    ) -> tuple[Measurement, ...]:
        """What each candidate gives, in order.

        Args:
            values: Whether to compute values and compare them; without, only times and rules.
            keep_outputs: Whether to send the values back.
        """
        with _one_thread_each():
            waiting = [
                self._pool.schedule(measure, args=(candidate, values, keep_outputs), timeout=self._timeout_s)
                for candidate in candidates
            ]
        return tuple(self._result(*pair) for pair in zip(candidates, waiting))

    def _result(self, candidate: Candidate, future: Any) -> Measurement:
        try:
            found: Measurement = future.result()
        except DeadlineError:
            sentence = f"it takes longer than {self._timeout_s:g} s to run here"
            return Measurement(candidate, refusal=Refusal.TIMEOUT, error=sentence)
        except ProcessExpired as error:
            sentence = f"its process ended with status {error.exitcode}"
            return Measurement(candidate, refusal=Refusal.CRASHED, error=sentence)
        return found


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started meanwhile compute with one thread each: there is one for each CPU."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def evaluate(
    kernels: Sequence[Candidate | str],
    inputs: tuple[Any, ...] | str,
    *,
    expected: Arrays | str | None = None,
    tolerance: float = 1e-2,
    values: bool = True,
    keep_outputs: bool = False,
    workers: int | None = None,
    timeout_s: float = TIMEOUT_S,
    target: str | None = None,
) -> tuple[Measurement, ...]:
    """Measure kernels: simulated time, use of SBUF, counters, values, errors. Made for search by programs.

    Each runs in a process of its own with a deadline, so that one that hangs or crashes is one refused
    measurement. The kernel's code runs with the user's rights. In a script, call it below
    `if __name__ == "__main__":`, as everything that starts processes.

    Args:
        kernels: Candidates, or "FILE.py:FUNCTION".
        inputs: The arguments, arrays that can be pickled; or the name of a function of the file.
        expected: The values to compute; a kernel that computes others is refused. None: not compared.
        tolerance: Largest difference from them, relative to the largest.
        values: Whether to compute values at all; times alone come several times faster.
        keep_outputs: Whether to return the values.
        workers: Processes; None = one for each CPU.
        timeout_s: Deadline of each.
        target: Generation to simulate, e.g. "trn2"; None = the environment's.

    Returns:
        A measurement of each, in order.

    Example:
        >>> found = evaluate(["softmax.py:fused", "softmax.py:steps"], (data,))  # doctest: +SKIP
        >>> min(found, key=lambda each: each.time_ns or float("inf")).candidate.function  # doctest: +SKIP
        'fused'
    """
    candidates = [Candidate.named(each) if isinstance(each, str) else each for each in kernels]
    job = Job(inputs, expected, tolerance, target)
    with Evaluator(job, workers=min(workers or os.cpu_count() or 1, max(1, len(candidates))),
                   timeout_s=timeout_s) as evaluator:  # fmt: skip
        return evaluator.measure(candidates, values=values, keep_outputs=keep_outputs)
