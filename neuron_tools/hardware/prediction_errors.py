"""How far predicted times were from measured ones, and the range in which silicon is expected from that.

A range is conformal: of n rows, sorted by the size of their error, row ceil(share * (n + 1)) decides. No
shape of the errors' distribution is assumed. Errors are logarithms of predicted over measured time, so that
twice as long and half as long are equally far off.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache

from neuron_tools.frozen import frozen
from neuron_tools.hardware.catalogue import data_text

COLUMNS = ("kind", "group", "row", "predicted_over_measured")
SHARE = 0.8
"""Part of the measured times that shall lie in the range."""


class Kind(str, Enum):
    """What was predicted: each kind errs for its own reasons."""

    KERNEL = "kernel"
    """Instruction by instruction as on the chip: only the model of the hardware may be wrong."""
    MODEL = "model"
    """Compiled here: instructions are others than those of the chip's compiler, too."""


@frozen
class PredictionError:
    """One row.

    Attributes:
        group: The kernel or model: rows of one group are no independent evidence of each other.
        ratio: Predicted over measured time.
    """

    kind: Kind
    group: str
    row: str
    ratio: float

    @property
    def size(self) -> float:
        """Logarithm of the factor between both times."""
        return abs(math.log(self.ratio))


@frozen
class ExpectedFactors:
    """Range of measured over predicted time, and its two reasons; each as a part of the time, 0.1 for 10 %.

    Attributes:
        low, high: The measured time lies between these times the predicted one.
        compiler: How far the chip's compiler may make other code.
        hardware: How far the hardware may take other times for the same code.
    """

    low: float
    high: float
    compiler: float
    hardware: float


@lru_cache(maxsize=1)
def rows() -> tuple[PredictionError, ...]:
    """All rows, as `python -m benchmarks.prediction_errors` wrote them."""
    return tuple(
        PredictionError(
            Kind(item["kind"]), item["group"], item["row"], float(item["predicted_over_measured"])
        )
        for item in csv.DictReader(data_text("prediction_errors.csv").splitlines())
    )


def half_width(found: Sequence[PredictionError], share: float = SHARE) -> float:
    """The logarithmic error that a further row exceeds with a chance of at most 1 - `share`.

    Infinite where there are too few rows to say.
    """
    sizes = sorted(row.size for row in found)
    place = math.ceil(share * (len(sizes) + 1))
    return sizes[place - 1] if place <= len(sizes) else math.inf


@lru_cache(maxsize=1)
def expected_factors() -> ExpectedFactors:
    """The range for a program that was compiled here.

    The two reasons are independent: their squares add up to that of the whole.
    """
    whole, hardware = (half_width(of_kind(kind)) for kind in (Kind.MODEL, Kind.KERNEL))
    compiler = math.sqrt(max(whole**2 - hardware**2, 0.0))
    return ExpectedFactors(math.exp(-whole), math.exp(whole), math.exp(compiler) - 1, math.exp(hardware) - 1)


def of_kind(kind: Kind) -> list[PredictionError]:
    """Rows of one kind."""
    return [row for row in rows() if row.kind is kind]


def covered(found: Sequence[PredictionError], *, whole_groups: bool) -> float:
    """Part of rows that lie in the range made of the others.

    Args:
        whole_groups: Leave out all rows of a row's group with it.
    """
    inside = 0
    for row in found:
        others = [
            other for other in found
            if (other.group != row.group if whole_groups else other is not row)
        ]  # fmt: skip
        inside += row.size <= half_width(others)
    return inside / len(found)
