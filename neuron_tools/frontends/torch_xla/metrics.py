"""Counters and timings of the lazy device, under the names that `torch_xla.debug.metrics` reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Metrics:
    """What happened since the process started, or since `clear`.

    Attributes:
        counters: How often, by name: "UncachedCompile", "CachedCompile", "MarkStep", "aten::nonzero" for an
            operator that fell back to the CPU.
        samples: Durations in ns of each event, by name: "CompileTime", "ExecuteTime".
        causes: Why a graph was compiled, in the order in which they were.
    """

    counters: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[int]] = field(default_factory=dict)
    causes: list[str] = field(default_factory=list)

    def count(self, name: str) -> None:
        """Add one to a counter."""
        self.counters[name] += 1

    def add(self, name: str, duration_ns: int) -> None:
        """Add a duration."""
        self.samples.setdefault(name, []).append(duration_ns)

    def clear(self) -> None:
        """Forget everything."""
        self.counters.clear()
        self.samples.clear()
        self.causes.clear()


METRICS = Metrics()
