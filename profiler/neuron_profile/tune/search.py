"""Searches a kernel's space for the version that takes least simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from neuron_profile.tune.evaluate import TIMEOUT_S, Evaluator
from neuron_profile.tune.measurement import Candidate, Measurement
from neuron_profile.tune.proposals import Proposals
from neuron_profile.tune.space import Space
from neuron_profile.tune.worker import Job
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

AT_ONCE = 4
"""Candidates of a round for each worker: more keep the workers busy, fewer let it learn sooner."""
Progress = Callable[[int, int], None]
"""Called with how many candidates are done, of how many."""


class BaselineError(NeuronToolsError):
    """The kernel cannot be measured as it stands."""


@frozen
class Settings:
    """How to search.

    Attributes:
        candidates: How many to try at most.
        workers: Processes; None = one for each CPU.
        target: Generation to simulate; None = the environment's.
    """

    candidates: int = 200
    workers: int | None = None
    timeout_s: float = TIMEOUT_S
    seed: int = 0
    target: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What a search found.

    Attributes:
        baseline: The kernel as it stands.
        tried: Every candidate, in order.
        front: Those that no other beats in time and in use of SBUF, fastest first. The values of each were
            compared.
    """

    baseline: Measurement
    tried: tuple[Measurement, ...]
    front: tuple[Measurement, ...]

    @property
    def best(self) -> Measurement:
        """The fastest; the kernel as it stands where nothing is faster."""
        first = self.front[0] if self.front else self.baseline
        faster = (first.time_ns or 0) < (self.baseline.time_ns or 0)
        return first if faster else self.baseline


def search(kernel: Candidate, space: Space, settings: Settings, progress: Progress | None = None) -> Outcome:
    """Try candidates round by round.

    Candidates are timed without computing values; the values of each that would be the fastest, and in the
    end of the whole front, are computed and compared.

    Raises:
        BaselineError: The kernel as it stands cannot be measured, or computes wrong values.
    """
    baseline = _baseline(kernel, space, settings)
    expected = space.expected or baseline.outputs
    job = Job(space.inputs, expected, space.tolerance, settings.target)
    with Evaluator(job, workers=settings.workers, timeout_s=settings.timeout_s) as evaluator:
        found = _Search(kernel, evaluator, Proposals(space, settings.candidates, settings.seed))
        found.run(settings.candidates, progress)
        front = found.checked_front()
    return Outcome(replace(baseline, outputs=None), tuple(found.tried.values()), front)


def _baseline(kernel: Candidate, space: Space, settings: Settings) -> Measurement:
    job = Job(space.inputs, space.expected or None, space.tolerance, settings.target)
    with Evaluator(job, workers=1, timeout_s=10 * settings.timeout_s) as evaluator:
        (found,) = evaluator.measure([kernel], keep_outputs=True)
    if not found.counts:
        raise BaselineError(f"{kernel.function} cannot be tuned as it stands: {found.error.rstrip('.')}.")
    return found


class _Search:
    """The state of one search."""

    def __init__(self, kernel: Candidate, evaluator: Evaluator, proposals: Proposals) -> None:
        self._kernel = kernel
        self._evaluator = evaluator
        self._proposals = proposals
        self.tried: dict[int, Measurement] = {}
        self._best_ns = float("inf")

    def run(self, most: int, progress: Progress | None) -> None:
        """Try so many candidates."""
        while len(self.tried) < most:
            asked = self._proposals.ask(min(AT_ONCE * self._evaluator.workers, most - len(self.tried)))
            if not asked:
                return
            candidates = [replace(self._kernel, parameters=parameters) for parameters in asked]
            for found in self._evaluator.measure(candidates, values=False):
                self.tried[len(self.tried)] = found
            for number in range(len(self.tried) - len(asked), len(self.tried)):
                self._check_if_fastest(number)
                found = self.tried[number]
                time_ns = found.time_ns if found.counts and found.time_ns is not None else float("inf")
                self._proposals.tell(found.candidate.parameters, time_ns)
            if progress:
                progress(len(self.tried), most)

    def _check_if_fastest(self, number: int) -> None:
        found = self.tried[number]
        if found.counts and (found.time_ns or 0) < self._best_ns:
            self._check([number])
            if self.tried[number].counts:
                self._best_ns = found.time_ns or 0

    def _check(self, numbers: Iterable[int]) -> None:
        """Compute and compare the values of candidates."""
        chosen = list(numbers)
        found = self._evaluator.measure([self.tried[number].candidate for number in chosen])
        self.tried.update(zip(chosen, found))

    def checked_front(self) -> tuple[Measurement, ...]:
        """The front; who stands on it and computes wrong values leaves it to the next."""
        while True:
            front = pareto_front(self.tried)
            unchecked = [number for number in front if self.tried[number].difference is None]
            if not unchecked:
                return tuple(self.tried[number] for number in front)
            self._check(unchecked)


def pareto_front(tried: dict[int, Measurement]) -> list[int]:
    """Numbers of the candidates that count and that no other beats in both time and SBUF, fastest first."""
    order = sorted(
        (number for number, found in tried.items() if found.counts),
        key=lambda number: (_time(tried[number]), tried[number].sbuf_bytes, number),
    )
    front: list[int] = []
    for number in order:
        if not front or tried[number].sbuf_bytes < tried[front[-1]].sbuf_bytes:
            front.append(number)
    return front


def _time(found: Measurement) -> float:
    return found.time_ns if found.time_ns is not None else float("inf")
