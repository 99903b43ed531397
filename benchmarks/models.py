"""Common models in one training step each: what is lowered natively, and whether values and times hold."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Figure, Target
from benchmarks.zoo.case import Case
from benchmarks.zoo.catalogue import CASES, case
from benchmarks.zoo.coverage import Coverage, half_difference, measure

QUICK = ("llama", "resnet", "gnn")
TOLERANCE = 1e-3
"""Of float32 values against the CPU's: attention is summed in another order."""
HALF_TOLERANCE = 2**-5
"""Of bfloat16 values (8 bits of mantissa), through all layers and back."""


def run(quick: bool = False) -> list[Figure]:
    """Figures over all models, and each one's time; `quick` takes three of them."""
    cases = [case(name) for name in QUICK] if quick else list(CASES)
    rows = [measure(model, compiled=compiled) for model in cases for compiled in (False, True)]
    return [*_over_all(rows), _in_half(cases), *(figure for row in rows for figure in _of_one(row))]


def _over_all(rows: Sequence[Coverage]) -> list[Figure]:
    operations = sum(row.operations for row in rows)
    custom = sum(sum(row.custom_calls.values()) for row in rows)
    names = sorted({name for row in rows for name in row.custom_calls})
    return [
        Figure(
            "operations lowered natively",
            100 * (1 - custom / operations),
            "%",
            Target(">=", 99),
            note=f"of {operations:,}; not: {', '.join(names) or 'none'}",
        ),
        Figure("refused operations", sum(row.refused for row in rows), "operations", Target("<=", 0)),
        _difference(
            "largest difference from the CPU", max(row.difference for row in rows),
            "loss, prediction and gradients, float32",
        ),
        _difference(
            "parameters after AdamW, difference from the CPU", max(row.parameter_difference for row in rows),
            "each by its own gradients",
        ),
        _least_share("device time at a source line", [row.line_share for row in rows]),
        _least_share("device time in a module", [row.module_share for row in rows]),
        Figure(
            "lines and the rest against the total", max(row.line_sum_error for row in rows), "relative",
            Target("<=", 1e-9),
        ),
    ]  # fmt: skip


def _in_half(cases: Sequence[Case]) -> Figure:
    worst = max(half_difference(model, compiled=compiled) for model in cases for compiled in (False, True))
    return _difference(
        "the same in bfloat16", worst, "loss, prediction, gradients, parameters", HALF_TOLERANCE
    )


def _difference(name: str, value: float, note: str, most: float = TOLERANCE) -> Figure:
    return Figure(name, value, "of the largest value", Target("<=", most), note=note)


def _least_share(name: str, shares: Sequence[float]) -> Figure:
    return Figure(name, 100 * min(shares), "%", Target(">=", 98), note="least of all models")


def _of_one(row: Coverage) -> list[Figure]:
    name = f"{row.model}, {row.mode}"
    note = f"{row.operations:,} operations, {row.executables} compiled, {row.instructions:,} instructions"
    return [
        Figure(f"{name}: simulated time", row.device_us, "µs", note=note),
        Figure(f"{name}: MFU", 100 * row.mfu, "%", note="of the device time"),
        Figure(f"{name}: compile time", row.compile_ms, "ms", note="lower, compile and simulate"),
    ]
