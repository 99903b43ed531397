"""How much of a profile's device time stands at source lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neuron_profile.analysis.hotspots import find_hotspots
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store.frontier import OwnCode

LEAST = 0.99
_INSTRUCTIONS = """
SELECT coalesce(sum(duration_ns) FILTER (coalesce(stack_frame_ids, '') <> ''), 0) AS at_lines,
    coalesce(sum(duration_ns), 0) AS total
FROM Instruction
"""


@dataclass(frozen=True)
class LineShares:
    """Shares of a profile's time.

    Attributes:
        lines: Of device time, at any line.
        own: Of device time, at lines of the tutorial's own files.
        instructions: Of the time that instructions take, of those with a source stack.
    """

    lines: float
    own: float
    instructions: float

    def __str__(self) -> str:
        """In a line."""
        return (
            f"{self.lines:.2%} of device time at lines, {self.own:.2%} at the tutorial's own, "
            f"{self.instructions:.2%} of instructions' time"
        )


def share_at_lines(profile: Path, own_folder: Path) -> LineShares | None:
    """Ask a profile.

    Args:
        profile: Its folder.
        own_folder: Where the tutorial's own files are.

    Returns:
        None where nothing ran on the device.
    """
    with open_profile(profile).seen_by(OwnCode((str(own_folder),))) as opened:
        found = find_hotspots(opened)
        (row,) = opened.query(_INSTRUCTIONS).to_pylist()
    if not found.device_ns:
        return None
    return LineShares(
        1 - found.without_line_ns / found.device_ns,
        found.own_code_ns / found.device_ns,
        row["at_lines"] / row["total"],
    )
