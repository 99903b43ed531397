"""What the pages show: one opened profile with everything computed from it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.hotspots import Cost, LineCost
from neuron_profile.analysis.identity import Identity, identify
from neuron_profile.analysis.idle_reasons import EngineTime, idle_reasons
from neuron_profile.analysis.overview import Overview, make_overview
from neuron_profile.analysis.roofline import Roofline, make_roofline
from neuron_tools.profile.reader import Profile


@dataclass(frozen=True)
class Content:
    """A profile, ready to be shown; what only some pages need is computed when one asks for it."""

    profile: Profile
    identity: Identity
    overview: Overview

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The advice."""
        return advise(self.profile)

    @cached_property
    def engine_times(self) -> tuple[EngineTime, ...]:
        """Why each engine was idle."""
        return idle_reasons(self.profile)

    def roofline(self, level: str) -> Roofline:
        """The roofline at a level of the hierarchy."""
        return make_roofline(self.profile, level)

    def line_costs(self, file: str) -> dict[int, Cost]:
        """Cost of each line of a file that has any."""
        return {row.place.line: row.cost for row in self.overview.hotspots.lines if row.place.file == file}

    def files(self) -> list[tuple[str, float]]:
        """Source files with device time, and how much of it, the costliest first."""
        sums: dict[str, float] = defaultdict(float)
        for row in self.lines:
            sums[row.place.file] += row.cost.device_ns
        return sorted(sums.items(), key=lambda item: (-item[1], item[0]))

    @property
    def lines(self) -> tuple[LineCost, ...]:
        """All source lines with device time, the costliest first."""
        return self.overview.hotspots.lines


def read_content(profile: Profile) -> Content:
    """Compute everything that the pages need; the profile must stay open while they are shown."""
    return Content(profile, identify(profile), make_overview(profile))
