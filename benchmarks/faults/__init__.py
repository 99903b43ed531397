"""The scoreboard of the advice: programs with a planted fault, their mended twins, and what is found.

`python -m benchmarks faults` captures each program in its turn, asks for the advice, makes the edit that
it offers, and captures that too.
"""

from __future__ import annotations

from benchmarks.faults.scoreboard import run

__all__ = ["run"]
