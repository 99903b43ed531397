"""What the pages show: one opened profile with everything computed from it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from neuron_profile.analysis.hotspots import Cost, LineCost
from neuron_profile.analysis.identity import Identity, identify
from neuron_profile.analysis.overview import Overview, make_overview
from neuron_tools.profile.reader import Profile


@dataclass(frozen=True)
class Content:
    """A profile, ready to be shown."""

    identity: Identity
    overview: Overview

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
    return Content(identify(profile), make_overview(profile))
