"""What the pages show of a profile, computed once per profile in the background and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from neuron_explorer.jobs import CancelledError, Job, Progress, WatchedProfile
from neuron_explorer.library import ProfileLibrary
from neuron_tools.profile.reader import Profile

Analysis = Callable[..., Any]
KEPT = 400
"""Results in memory; of more, those asked for longest ago are dropped."""


@dataclass(frozen=True, slots=True)
class _Entry:
    title: str
    function: Analysis
    of_profiles: bool


_ANALYSES: dict[str, _Entry] = {}


def analysis(name: str, title: str, *, of_profiles: bool = False) -> Callable[[Analysis], Analysis]:
    """Give a function of a profile a name under which `Analyses` computes it.

    Args:
        title: What it does, as the page says while it runs: "Summing up device time".
        of_profiles: Whether its arguments are ids of further profiles, which it gets open.
    """

    def remember(function: Analysis) -> Analysis:
        _ANALYSES[name] = _Entry(title, function, of_profiles)
        return function

    return remember


class Analyses:
    """Results of analyses by profile and name."""

    def __init__(self, library: ProfileLibrary) -> None:
        self._library = library
        self._lock = Lock()
        self._jobs: dict[tuple[str, str, int], Job] = {}

    def job(self, profile_id: str, name: str, *arguments: str) -> Job:
        """The job that computes, or has computed, an analysis; begun if there is none.

        Args:
            arguments: Texts that the analysis takes besides the profile.

        Raises:
            UnknownProfileError, NotAProfileError: The profile cannot be opened.
        """
        profile = self._library.get(profile_id)
        entry = _ANALYSES[name]
        given: Sequence[Any] = (
            [self._library.get(one) for one in arguments] if entry.of_profiles else arguments
        )
        key = (profile_id, "\0".join((name, *arguments)), id(profile))
        with self._lock:
            found = self._jobs.pop(key, None)
            if found is None or isinstance(found.error, CancelledError):
                found = Job(_run(profile, entry, given), name)
            self._jobs[key] = found
            while len(self._jobs) > KEPT:
                del self._jobs[next(iter(self._jobs))]
        return found

    def now(self, profile_id: str, name: str, *arguments: str) -> Any:
        """The result, waited for as long as it takes.

        Raises:
            NeuronToolsError: The analysis failed.
        """
        job = self.job(profile_id, name, *arguments)
        while not job.wait(1.0):
            pass
        if job.error is not None:
            raise job.error
        return job.result

    def retry(self, profile_id: str, name: str, *arguments: str) -> None:
        """Drop an analysis that failed, so that it is computed again when it is next asked for."""
        if self.job(profile_id, name, *arguments).error is not None:
            wanted = profile_id, "\0".join((name, *arguments))
            with self._lock:
                for key in [key for key in self._jobs if key[:2] == wanted]:
                    del self._jobs[key]

    def forget(self, profile_id: str) -> None:
        """Cancel and drop what belongs to a profile."""
        with self._lock:
            for key in [key for key in self._jobs if key[0] == profile_id]:
                self._jobs.pop(key).progress.cancel()


def _run(profile: Profile, entry: _Entry, arguments: Sequence[Any]) -> Callable[[Progress], Any]:
    def run(progress: Progress) -> Any:
        progress.text = entry.title
        given = [WatchedProfile(one, progress) if entry.of_profiles else one for one in arguments]
        return entry.function(WatchedProfile(profile, progress), *given)

    return run
