"""Rows of measurements.csv, and which of them the benchmark predicts."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Row:
    """One published number of a whole model.

    Attributes:
        identity: Names the row.
        model: "bert", "vit", "resnet50", "llama-3-8b" or "llama-2-13b".
        target: Generation.
        batch: Sequences or images of a call.
        quantity: "latency" (P50 of a call), "throughput", "tpot" or "ttft" (P50).
        value: In `unit`.
        unit: "ms" or "1/s".
        version: Neuron SDK of the measurement.
        source: Citation.
    """

    identity: str
    model: str
    target: str
    batch: int
    quantity: str
    value: float
    unit: str
    version: str
    source: str

    @property
    def label(self) -> str:
        """What people read, e.g. "bert, batch 8, inf2"."""
        what = "" if self.quantity == "latency" else f", {self.quantity}"
        return f"{self.model}, batch {self.batch}, {self.target}{what}"


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    """All published rows."""
    text = (resources.files("benchmarks.whole_model_rows") / "measurements.csv").read_text(encoding="utf-8")
    return tuple(
        Row(item["id"], item["model"], item["target"], int(item["batch"]), item["quantity"],
            float(item["value"]), item["unit"], item["version"], item["source"])
        for item in csv.DictReader(text.splitlines())
    )  # fmt: skip


def newest(model: str, target: str, batch: int, quantity: str) -> Row:
    """The row of the newest SDK for a case."""
    fitting = [
        row for row in rows()
        if (row.model, row.target, row.batch, row.quantity) == (model, target, batch, quantity)
    ]  # fmt: skip
    return max(fitting, key=lambda row: tuple(map(int, row.version.split("."))))
