"""Published measurements: rows of measurements.csv with the citations of sources.csv."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Measurement:
    """One published number.

    Attributes:
        name: Identifies the row.
        target: Generation, e.g. "trn2".
        instance: Instance type; "" where the source does not say.
        cores: Physical NeuronCores that did the work.
        kernel: What ran.
        parameters: Its sizes by name.
        dtype: Element type; "" where it does not matter.
        quantity: What was measured, e.g. "latency".
        value: In `unit`: ns, B, B/s, FLOP/s, fraction or count.
        unit: See above.
        source: Citation.
        remark: What the reader must know.
    """

    name: str
    target: str
    instance: str
    cores: int
    kernel: str
    parameters: Mapping[str, str]
    dtype: str
    quantity: str
    value: float
    unit: str
    source: str
    remark: str

    def size(self, name: str) -> int:
        """A parameter as a number; 0 where it is not given."""
        return int(self.parameters.get(name, 0))

    @property
    def execution(self) -> tuple[object, ...]:
        """Rows with the same key describe one execution."""
        return self.target, self.kernel, self.dtype, self.cores, tuple(self.parameters.items())

    @property
    def is_held_out(self) -> bool:
        """Whether no constant may be chosen by this row: half of the executions, by the hash of their key."""
        return hashlib.sha256(repr(self.execution).encode()).digest()[0] % 2 == 1


@lru_cache(maxsize=1)
def measurements() -> tuple[Measurement, ...]:
    """All rows in the order of the file."""
    citations = {row["source"]: row["citation"] for row in _rows("sources.csv")}
    return tuple(_measurement(row, citations) for row in _rows("measurements.csv"))


def _measurement(row: Mapping[str, str], citations: Mapping[str, str]) -> Measurement:
    pairs = ((pair.split("=")[0], pair.split("=")[1]) for pair in row["parameters"].split())
    return Measurement(
        name=row["id"],
        target=row["target"],
        instance=row["instance"],
        cores=int(row["cores"]),
        kernel=row["kernel"],
        parameters=MappingProxyType(dict(pairs)),
        dtype=row["dtype"],
        quantity=row["quantity"],
        value=float(row["value"]),
        unit=row["unit"],
        source=citations[row["source"]],
        remark=row["remark"],
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files("benchmarks.fidelity_kernels") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
