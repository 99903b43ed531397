"""`make coverage-models`: prints what is lowered natively of each model of the zoo in a training step.

With `--keep FILE` each row is written there as soon as it is measured, and what stands there is not measured
again: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.zoo.case import Case
from benchmarks.zoo.catalogue import CASES, case
from benchmarks.zoo.coverage import Coverage, measure

HEADINGS = (
    "model", "mode", "operations", "native", "custom calls", "compiled", "compile", "instructions",
    "simulated", "MFU", "at a line", "in a module", "difference", "parameters",
)  # fmt: skip
WIDTH = 220
MODES = ("eager", "fused", "compiled")


def row(coverage: Coverage) -> tuple[str, ...]:
    """One line of the table."""
    calls = ", ".join(f"{name} × {count}" for name, count in sorted(coverage.custom_calls.items()))
    return (
        coverage.model,
        coverage.mode,
        f"{coverage.operations:,}",
        f"{coverage.native_share:.1%}",
        calls + (f"; {coverage.refused} refused" if coverage.refused else ""),
        f"{coverage.executables:,}",
        f"{coverage.compile_ms:,.0f} ms",
        f"{coverage.instructions:,}",
        f"{coverage.device_us:,.0f} µs",
        f"{coverage.mfu:.4%}",
        f"{coverage.line_share:.1%}",
        f"{coverage.module_share:.1%}",
        f"{coverage.difference:.1e}",
        f"{coverage.parameter_difference:.1e}",
    )


def total(rows: Sequence[Coverage]) -> str:
    """The sum over the table in a sentence."""
    operations = sum(coverage.operations for coverage in rows)
    calls: Counter[str] = Counter()
    for coverage in rows:
        calls.update(coverage.custom_calls)
    native = 1 - calls.total() / max(operations, 1)
    named = ", ".join(f"{name} × {count}" for name, count in calls.most_common())
    return f"{operations:,} operations, {native:.2%} lowered natively" + (f"; not: {named}" if named else "")


class KeptRows:
    """Rows in a file, one JSON object a line; none are kept without a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        kept = [Coverage(**json.loads(line)) for line in lines]
        self._rows = {(each.model, each.mode): each for each in kept}

    def row(self, model: Case, mode: str) -> Coverage:
        """The row as it is kept, or measured now and kept."""
        key = (model.name, mode)
        if key not in self._rows:
            self._rows[key] = measure(model, compiled=mode == "compiled", fused=mode == "fused")
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(asdict(self._rows[key])) + "\n")
        return self._rows[key]


def main(arguments: Sequence[str]) -> int:
    """Measure the named models (all without names) and print; 1 where an operation was refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="keep rows here; those there are not measured"
    )
    parser.add_argument("models", nargs="*")
    chosen = parser.parse_args(arguments)
    kept = KeptRows(chosen.keep)
    table = Table(*HEADINGS, title="One training step: forward, backward, AdamW")
    rows = []
    for model in [case(name) for name in chosen.models] or CASES:
        for mode in MODES:
            rows.append(kept.row(model, mode))
            table.add_row(*row(rows[-1]))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table)
    console.print(total(rows))
    return int(any(coverage.refused for coverage in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
