"""What the pages show of a profile, or of a range of it: computed once in the background and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Semaphore
from time import monotonic
from typing import Any

from neuron_explorer.jobs import Job, Progress, WatchedProfile
from neuron_explorer.library import ProfileLibrary
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

Analysis = Callable[..., Any]
Range = tuple[int, int]
KEPT = 400
"""Results in memory; of more, those asked for longest ago are dropped."""
SLICES = 8
"""Ranges of profiles that stay open."""
POLL_S = 0.2
ABANDONED_S = 10.0
"""After so long without anybody asking for it, work on a range stops: the user has gone on to another."""
CLOSING_S = 3.0


@frozen
class _Entry:
    title: str
    function: Analysis
    of_profiles: bool
    of_whole: bool
    is_heavy: bool
    is_light_of_ranges: bool
    begins_after_s: float


_ANALYSES: dict[str, _Entry] = {}


def analysis(
    name: str,
    title: str,
    *,
    of_profiles: bool = False,
    of_whole: bool = False,
    is_heavy: bool = False,
    is_light_of_ranges: bool = False,
    begins_after_s: float = 0.0,
) -> Callable[[Analysis], Analysis]:
    """Give a function of a profile a name under which `Analyses` computes it.

    Args:
        title: What it does, as the page says while it runs: "Summing up device time".
        of_profiles: Whether its arguments are ids of further profiles, which it gets open.
        of_whole: Whether it takes the whole profile also where a range is chosen.
        is_heavy: Whether it may take much time and memory: of such ones, one runs at a time. One of a range
            that nobody asks for any more is dropped.
        is_light_of_ranges: Whether a heavy one is not where a range is chosen.
        begins_after_s: How long it lets what a user waits for go first.
    """

    def remember(function: Analysis) -> Analysis:
        _ANALYSES[name] = _Entry(
            title, function, of_profiles, of_whole, is_heavy, is_light_of_ranges, begins_after_s
        )
        return function

    return remember


class Analyses:
    """Results of analyses by profile, range and name."""

    def __init__(self, library: ProfileLibrary) -> None:
        self._library = library
        self._lock = Lock()
        self._turn = Semaphore(1)
        self._jobs: dict[tuple[str, str, Range | None, int], Job] = {}
        self._slices: dict[tuple[str, Range, int], Profile] = {}
        library.call_before_close(self.close)

    def job(self, profile_id: str, name: str, *arguments: str, range_ns: Range | None = None) -> Job:
        """The job that computes, or has computed, an analysis; begun if there is none.

        One that was cancelled stays so until `retry`: whoever asks on must not begin it again.

        Args:
            arguments: Texts that the analysis takes besides the profile.
            range_ns: Start and end of the part of the profile to analyse; None for all of it.

        Raises:
            UnknownProfileError, NotAProfileError: The profile cannot be opened.
        """
        entry = _ANALYSES[name]
        chosen = None if entry.of_whole else range_ns
        profile = self._library.get(profile_id)
        given: Sequence[Any] = (
            [self._library.get(one) for one in arguments] if entry.of_profiles else arguments
        )
        key = (profile_id, "\0".join((name, *arguments)), chosen, _state(profile, chosen))
        with self._lock:
            found = self._jobs.pop(key, None)
            if found is None or found.was_abandoned:
                part = self._part(profile_id, profile, chosen)
                found = Job(self._work(part, entry, given), name)
                if entry.is_heavy and chosen is not None:
                    found.progress.patience_s = ABANDONED_S
            found.progress.ask()
            self._jobs[key] = found
            _drop_first(self._jobs, KEPT)
        return found

    def now(self, profile_id: str, name: str, *arguments: str, range_ns: Range | None = None) -> Any:
        """The result, waited for as long as it takes.

        Raises:
            NeuronToolsError: The analysis failed.
        """
        job = self.job(profile_id, name, *arguments, range_ns=range_ns)
        while not job.wait(POLL_S):
            job.progress.ask()
        if job.error is not None:
            raise job.error
        return job.result

    def part(self, profile_id: str, range_ns: Range | None) -> Profile:
        """A profile, or a range of it.

        Raises:
            UnknownProfileError, NotAProfileError: The profile cannot be opened.
        """
        profile = self._library.get(profile_id)
        with self._lock:
            return self._part(profile_id, profile, range_ns)

    def retry(self, profile_id: str, name: str, *arguments: str, range_ns: Range | None = None) -> None:
        """Drop an analysis that failed or was cancelled, so that it is computed when it is next asked for."""
        failed = self.job(profile_id, name, *arguments, range_ns=range_ns)
        if failed.error is not None:
            with self._lock:
                for key in [key for key, job in self._jobs.items() if job is failed]:
                    del self._jobs[key]

    def forget(self, profile_id: str) -> None:
        """Cancel and drop what belongs to a profile."""
        with self._lock:
            for key in [key for key in self._jobs if key[0] == profile_id]:
                self._jobs.pop(key).progress.cancel()
            for place in [place for place in self._slices if place[0] == profile_id]:
                self._slices.pop(place).close()

    def close(self) -> None:
        """Cancel all work, and wait a moment for it to end."""
        with self._lock:
            running = [job for job in self._jobs.values() if not job.is_done]
        until = monotonic() + CLOSING_S
        for job in running:
            job.stop(max(POLL_S, until - monotonic()))

    def _part(self, profile_id: str, profile: Profile, range_ns: Range | None) -> Profile:
        if range_ns is None:
            return profile
        key = (profile_id, range_ns, id(profile))  # a range reads from the state that it is a range of
        part = self._slices.pop(key, None) or profile.slice(*range_ns)
        self._slices[key] = part
        _drop_first(self._slices, SLICES)  # it closes when nothing reads it any more
        return part

    def _work(self, profile: Profile, entry: _Entry, arguments: Sequence[Any]) -> Callable[[Progress], Any]:
        def run(progress: Progress) -> Any:
            progress.pause(entry.begins_after_s)
            with self._one_at_a_time(entry, progress, is_range=profile.range_ns is not None):
                progress.text = entry.title
                given = [WatchedProfile(one, progress) if entry.of_profiles else one for one in arguments]
                return entry.function(WatchedProfile(profile, progress), *given)

        return run

    @contextmanager
    def _one_at_a_time(self, entry: _Entry, progress: Progress, *, is_range: bool) -> Iterator[None]:
        """Wait for the turn of a heavy analysis."""
        is_heavy = entry.is_heavy and not (is_range and entry.is_light_of_ranges)
        if not is_heavy:
            yield
            return
        progress.text = f"{entry.title}: waiting for other work"
        while not self._turn.acquire(timeout=POLL_S):
            progress.check()
        try:
            yield
        finally:
            self._turn.release()


def _state(profile: Profile, range_ns: Range | None) -> int:
    """Tells states of a profile apart; what a capture wrote of a range that is over stays as it is."""
    return id(profile) if range_ns is None or profile.complete else 0


def _drop_first(kept: dict[Any, Any], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]
