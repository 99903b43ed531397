"""What parts of a program cost, as sums that grow part by part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class Cost:
    """Device time, what of it is of backward passes, and work; times in ns."""

    device_ns: float = 0.0
    backward_ns: float = 0.0
    instructions: int = 0
    hbm_bytes: int = 0
