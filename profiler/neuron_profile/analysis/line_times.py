"""The device time that stands beside each line of a source file, wherever a file is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from neuron_profile.analysis.hotspots import Hotspots
from neuron_profile.analysis.kernel_charges import KernelLine
from neuron_tools.frozen import frozen


@frozen
class LineTimes:
    """Device time in ns by line of a file.

    Attributes:
        charged: In a file of the user's with what libraries do for a line, in a library's its own.
        in_kernels: Of lines inside kernels: a part of what the lines are charged that call the kernels.
    """

    charged: Mapping[int, float]
    in_kernels: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, hotspots: Hotspots, kernel_lines: Iterable[KernelLine], file: str) -> LineTimes:
        """The times of a file."""
        here = [row for row in hotspots.lines if row.place.file == file]
        here = here or [row for row in hotspots.exact_lines if row.place.file == file]
        inside = {row.place.line: row.device_ns for row in kernel_lines if row.place.file == file}
        return cls({row.place.line: row.cost.device_ns for row in here}, inside)

    @property
    def shown(self) -> dict[int, float]:
        """What stands beside each line."""
        return {**self.in_kernels, **self.charged}
