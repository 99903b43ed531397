"""What one process has done on one core, as its file in `processes/` tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Memory:
    """Bytes of one category: allocated ever, held now, and the most held at once."""

    total: int = 0
    present: int = 0
    peak: int = 0

    def as_json(self) -> dict[str, int]:
        """As a process's file has it."""
        return {"total": self.total, "present": self.present, "peak": self.peak}


@dataclass(slots=True)
class CoreCounts:
    """Counters of a core since a process (or the tree) started; times are simulated, in ns.

    Attributes:
        index: `i` of `neuron:i` in the process.
        status: Executions by how they ended; statuses without any are left out.
        latency: "device" and "total": executions by upper bound of their time.
    """

    device: int = 0
    core: int = 0
    index: int = 0
    status: dict[str, int] = field(default_factory=dict)
    inference_count: int = 0
    model_load_count: int = 0
    flop_count: int = 0
    busy_ns: int = 0
    elapsed_ns: int = 0
    throttled_ns: int = 0
    engine_busy_ns: dict[str, int] = field(default_factory=dict)
    traffic: dict[str, int] = field(default_factory=dict)
    device_memory: dict[str, Memory] = field(default_factory=dict)
    latency: dict[str, dict[int, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As `processes/PID.json` has it."""
        told: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        told["device_memory"] = {name: held.as_json() for name, held in self.device_memory.items()}
        return told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> CoreCounts:
        """What `as_json` gave.

        Raises:
            TypeError, ValueError, AttributeError: It is something else.
        """
        fields = dict(told)
        memory = {name: Memory(**bytes_) for name, bytes_ in fields.pop("device_memory", {}).items()}
        latency = {
            name: {int(bound): int(count) for bound, count in counts.items()}
            for name, counts in fields.pop("latency", {}).items()
        }
        return cls(device_memory=memory, latency=latency, **fields)

    def without_present(self) -> CoreCounts:
        """What stays of it when the process is gone: it holds nothing any more."""
        left = {name: Memory(held.total, 0, held.peak) for name, held in self.device_memory.items()}
        return sum_of([self], device_memory=left)


_NUMBERS = (
    "inference_count", "model_load_count", "flop_count", "busy_ns", "elapsed_ns", "throttled_ns",
)  # fmt: skip
_TABLES = ("status", "engine_busy_ns", "traffic")


def sum_of(cores: Iterable[CoreCounts], device_memory: dict[str, Memory] | None = None) -> CoreCounts:
    """All counts together; a category's peak is the largest of one process."""
    rows = list(cores)
    total = CoreCounts(device_memory=device_memory if device_memory is not None else _all_memory(rows))
    for name in _NUMBERS:
        setattr(total, name, sum(getattr(row, name) for row in rows))
    for name in _TABLES:
        setattr(total, name, _added(getattr(row, name) for row in rows))
    kinds = sorted({kind for row in rows for kind in row.latency})
    total.latency = {kind: _added(row.latency.get(kind, {}) for row in rows) for kind in kinds}
    return total


def _added(tables: Iterable[Mapping[Any, int]]) -> dict[Any, int]:
    added: dict[Any, int] = {}
    for table in tables:
        for name, count in table.items():
            added[name] = added.get(name, 0) + count
    return added


def _all_memory(rows: list[CoreCounts]) -> dict[str, Memory]:
    names = sorted({name for row in rows for name in row.device_memory})
    return {name: _joined([row.device_memory.get(name, Memory()) for row in rows]) for name in names}


def _joined(held: list[Memory]) -> Memory:
    return Memory(sum(m.total for m in held), sum(m.present for m in held), max(m.peak for m in held))
