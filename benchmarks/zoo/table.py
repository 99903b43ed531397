"""`make coverage-models`: prints what is lowered natively of each model of the zoo in a training step."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.zoo.catalogue import CASES, case
from benchmarks.zoo.coverage import Coverage, measure

HEADINGS = (
    "model", "mode", "operations", "native", "custom calls", "compiled", "compile", "instructions",
    "simulated", "MFU", "at a line", "in a module", "difference",
)  # fmt: skip
WIDTH = 200


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


def main(names: Sequence[str]) -> int:
    """Measure the named models (all without names) and print; 1 where an operation was refused."""
    chosen = [case(name) for name in names] if names else list(CASES)
    table = Table(*HEADINGS, title="One training step: forward, backward, AdamW")
    rows = []
    for model in chosen:
        for compiled in (False, True):
            rows.append(measure(model, compiled=compiled))
            table.add_row(*row(rows[-1]))
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table)
    console.print(total(rows))
    return int(any(coverage.refused for coverage in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
