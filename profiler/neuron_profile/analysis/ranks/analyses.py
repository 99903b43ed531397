"""The analyses of single profiles and the advice, of many ranks: each made where the rank's profile is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from neuron_profile.analysis.catalogue import ANALYSES
from neuron_profile.analysis.ranks.partial import MEMORY_LIMIT
from neuron_profile.analysis.ranks.spread import Engine, Progress, in_order, spread
from neuron_profile.analysis.remembered import remembering
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile, open_profile

ADVICE = "advice"


@frozen
class RankAnalyses:
    """What was found in one profile.

    Attributes:
        results: By the analysis's name: a dataclass, or a tuple of them; findings of `ADVICE`.
        lacks: Why an analysis has no result, by its name.
    """

    path: str
    results: Mapping[str, Any] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)


def analyse_ranks(
    paths: Sequence[str],
    names: Sequence[str],
    engine: Engine,
    progress: Progress | None = None,
) -> tuple[RankAnalyses, ...]:
    """Some analyses of each profile, in the order of the paths.

    No process holds more than one profile's events; results are as small as what a command prints.

    Args:
        names: Of `ANALYSES`, or `ADVICE`.
        progress: Called with the profiles done and all of them.

    Raises:
        NeuronToolsError: A profile cannot be opened, or the scheduler cannot be reached.
        UsageError: There is no such analysis.
    """
    known = (*ANALYSES.names(), ADVICE)
    for name in names:
        if name not in known:
            raise UsageError(f"There is no analysis {name!r}: choose of {', '.join(known)}.")
    return tuple(in_order(spread(partial(analyse_rank, names=tuple(names)), paths, engine, progress)))


def analyse_rank(path: str, names: Sequence[str]) -> RankAnalyses:
    """Some analyses of one profile, which is opened and closed again."""
    from neuron_profile.analysis.errors import LacksDataError

    results, lacks = {}, {}
    with open_profile(path, memory_limit=MEMORY_LIMIT) as profile, remembering(profile):
        for name in names:
            try:
                results[name] = _analysis(profile, name)
            except LacksDataError as error:
                lacks[name] = str(error)
    return RankAnalyses(path, results, lacks)


def _analysis(profile: Profile, name: str) -> Any:
    from neuron_profile.analysis.advice.advise import advise
    from neuron_profile.analysis.analyses import run_analysis

    return advise(profile) if name == ADVICE else run_analysis(profile, name)
