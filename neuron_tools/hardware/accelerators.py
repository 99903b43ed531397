"""Peaks of other makers' accelerators, whose traces are imported and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from neuron_tools.frozen import frozen

_FILE = Path(__file__).parent / "data" / "accelerators.json"


@frozen
class Accelerator:
    """What one device can do at best.

    Attributes:
        flops: FLOP/s of dense products by element type: "fp64", "fp32", "tf32", "fp16", "bf16", "fp8" or
            "int8".
        bytes_per_second: Of the device's memory, reading and writing together.
        source: Where the figures are from.
    """

    name: str
    flops: Mapping[str, float]
    bytes_per_second: float
    source: str


def find_accelerator(device_name: str) -> Accelerator | None:
    """The accelerator that a device's name tells; None for one whose peaks are not known.

    Example:
        >>> find_accelerator("NVIDIA H100 80GB HBM3").bytes_per_second
        3350000000000.0
    """
    for pattern, accelerator in _accelerators():
        if pattern.search(device_name):
            return accelerator
    return None


def accelerators() -> tuple[Accelerator, ...]:
    """All accelerators whose peaks are known."""
    return tuple(accelerator for _, accelerator in _accelerators())


@cache
def _accelerators() -> tuple[tuple[re.Pattern[str], Accelerator], ...]:
    entries = json.loads(_FILE.read_text())["accelerators"]
    return tuple(
        (
            re.compile(entry["pattern"], re.IGNORECASE),
            Accelerator(entry["name"], entry["flops"], entry["bytes_per_second"], entry["source"]),
        )
        for entry in entries
    )
