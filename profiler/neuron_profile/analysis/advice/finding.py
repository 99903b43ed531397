"""One finding of the advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from neuron_tools.frozen import frozen


@frozen
class Place:
    """Where in the user's program a finding is; empty parts are not known."""

    file: str = ""
    line: int = 0
    function: str = ""
    module: str = ""
    operation: str = ""

    def __str__(self) -> str:
        if self.file:
            return f"{self.file}:{self.line}"
        return self.module or self.operation or "(whole program)"


@frozen
class Finding:
    """What is slow and what to do about it.

    Attributes:
        rule: Name of the rule: "fp32_matmul".
        title: What was found, in one line.
        change: What to change, in plain words.
        place: Where: the user's own line, where a stack says which.
        library_place: The exact line, where that is a library's; empty otherwise.
        gain_ns: Time of the whole program that the change would save, simulated; None = not simulated.
        device_gain_ns: Device time that it would save.
        total_ns: Time of the whole program as it is, host included.
        device_ns: Device time as it is; 0 = not known.
        gain_of: What `gain_ns` and `total_ns` are times of.
        what_if: The change that was simulated, as `neuron-profile whatif --set` takes it; "" = none.
        evidence: Numbers that show it, by name.
        within_reach: Whether the program can change it; False where the compiler or a library decides.
    """

    rule: str
    title: str
    change: str
    place: Place = field(default_factory=Place)
    gain_ns: int | None = None
    device_gain_ns: int | None = None
    total_ns: int = 0
    gain_of: str = "the program"
    what_if: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    library_place: Place = field(default_factory=Place)
    within_reach: bool = True
    device_ns: int = 0

    @property
    def gain(self) -> float:
        """Saved part of the program's time, 0 to 1; 0 where nothing was simulated."""
        return max(0, self.gain_ns or 0) / self.total_ns if self.total_ns else 0.0

    @property
    def device_gain(self) -> float:
        """Saved part of the device time, 0 to 1; 0 where that is not known."""
        return max(0, self.device_gain_ns or 0) / self.device_ns if self.device_ns else 0.0
