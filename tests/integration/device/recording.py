"""Records a piece of program with the device's own log and reads it back, for the tests here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neuron_tools.device import native
from neuron_tools.records.capture_log import RECORD_DTYPE, RecordKind


@dataclass
class Log:
    """What the device told while it recorded."""

    signatures: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    stacks: dict[int, tuple[tuple[str, int, str], ...]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    fusions: list[list[Any]] = field(default_factory=list)
    records: np.ndarray = field(default_factory=lambda: np.empty(0, RECORD_DTYPE))

    def of(self, kind: RecordKind, name: str | None = None) -> np.ndarray:
        chosen = self.records[self.records["kind"] == kind]
        if name is None:
            return chosen
        return chosen[[self.names.get(int(row["name"])) == name for row in chosen]]

    def line(self, record: np.ndarray) -> int:
        """The innermost user line of a record."""
        return self.stacks[int(record["stack"])][0][1]


def record(
    program: Callable[[], object],
    path: Path,
    duration_ns: int = 1_000,
    clock: str = "fixed",
    cost: Callable[[str, tuple[Any, ...]], tuple[int, int, int]] | None = None,
    fusion: native.EagerFusion = "off",
) -> Log:
    """Records `program`; every signature gets the next executable number and the same duration.

    Operations that wait together become one execution of that duration.
    """
    log = Log()

    def on_signature(name: str, arguments: tuple[Any, ...]) -> tuple[int, int, int]:
        log.signatures.append((name, arguments))
        return cost(name, arguments) if cost is not None else (len(log.signatures), duration_ns, 0)

    def on_fusion(waiting: list[Any]) -> tuple[int, int, int, int]:
        log.fusions.append(waiting)
        return 1000 + len(log.fusions), duration_ns, 0, len(waiting)

    native.set_clock(clock, 10_000)
    native.set_eager_fusion(fusion)
    native.set_copy_model(1e9, 500)
    native.set_launch_overhead_ns(0)
    native.start_recording(str(path), on_signature, log.stacks.__setitem__, log.names.__setitem__, on_fusion)
    try:
        program()
    finally:
        native.stop_recording()
        native.set_eager_fusion("off")
        native.set_clock("measured")
    log.records = np.fromfile(path, RECORD_DTYPE)
    return log
