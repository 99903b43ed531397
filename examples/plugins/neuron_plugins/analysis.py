"""An analysis: the longest spans of an imported trace."""

from __future__ import annotations

from dataclasses import dataclass

from neuron_profile.analysis.analyses import ProfileAnalysis
from neuron_tools.profile.reader import Profile

_QUERY = "SELECT name, end_ts - start_ts AS duration_ns FROM TraceSpan ORDER BY 2 DESC, 1 LIMIT 10"


@dataclass(frozen=True, slots=True)
class LongSpan:
    """A span; times end in their unit, and tables show them so."""

    name: str
    duration_ns: int


def longest_spans(profile: Profile, level: str = "") -> tuple[LongSpan, ...]:
    """The ten longest spans, longest first."""
    return tuple(LongSpan(row["name"], row["duration_ns"]) for row in profile.query(_QUERY).to_pylist())


LONGEST = ProfileAnalysis(longest_spans, None, "spans")
