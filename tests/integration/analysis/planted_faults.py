"""The example programs with a planted fault, as they stand and mended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.cases import mended

FOLDER = Path(__file__).parents[3] / "examples" / "faults"
FAULT = "# fault"


@dataclass(frozen=True)
class Fault:
    """A program with a fault and without.

    Attributes:
        rule: The rule that must find it first: the file's name.
        line: Number of the planted line.
    """

    rule: str
    faulty: str
    mended: str
    line: int


def read_fault(path: Path) -> Fault:
    """A fault from its example: a line `# mended: CODE` is what the line before it should be."""
    text = path.read_text()
    line = 1 + next(number for number, line in enumerate(text.splitlines()) if line.endswith(FAULT))
    return Fault(path.stem, text, mended(text), line)


def _is_of_one_process(path: Path) -> bool:
    return "torchrun" not in path.read_text()


FAULTS = {path.stem: read_fault(path) for path in sorted(FOLDER.glob("*.py")) if _is_of_one_process(path)}
"""Faults of programs of one process; those of several ranks are started by torchrun and tested with it."""
