"""What a line, function or module of a program costs, summed up over its operations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class Cost:
    """Device time, the part of it that backward passes take, and work; times in ns."""

    device_ns: float = 0.0
    backward_ns: float = 0.0
    instructions: int = 0
    hbm_bytes: int = 0
