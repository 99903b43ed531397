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
        samples: A number for each event, by name: durations in ns ("CompileTime", "ExecuteTime"), or bytes
            that were copied to the device and back ("OutboundData", "InboundData"), or how many tensors a
            graph of Dynamo's took and gave ("RunCachedGraphInputData", "RunCachedGraphOutputData").
        causes: Why a graph was compiled, in the order in which they were.
    """

    counters: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[int]] = field(default_factory=dict)
    causes: list[str] = field(default_factory=list)

    def count(self, name: str) -> None:
        """Add one to a counter."""
        self.counters[name] += 1

    def add(self, name: str, sample: int) -> None:
        """Add a duration in ns, bytes or a count."""
        self.samples.setdefault(name, []).append(sample)

    def clear(self) -> None:
        """Forget everything."""
        self.counters.clear()
        self.samples.clear()
        self.causes.clear()


METRICS = Metrics()
