"""Simulated against published measurements, row by row."""

from __future__ import annotations

import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.fidelity_kernels import public
from benchmarks.fidelity_kernels.measurement import measurements
from benchmarks.fidelity_kernels.prediction import Prediction, predict
from benchmarks.figures import Figure, Peer, Target

TIMES = ("latency", "profile_time", "duration", "interval", "throughput")
"""Quantities that are one number an execution; the others are counters and percentiles of the same one."""


def run(quick: bool = False) -> list[Figure]:
    """Errors over all rows, over one time an execution, by generation and by kind."""
    del quick  # the whole takes less than the quick limit
    predictions = predict(measurements())
    built = [p for p in predictions if not p.reason]
    times = one_per_execution(built)
    singles = [p for p in times if p.measurement.source.startswith("github.com/allenkchau")]
    kernels = [p for p in times if p not in singles]
    return [
        Figure("rows", len(predictions), "rows", note=f"{len(predictions) - len(built)} cannot be built"),
        *_with_peer(_errors("kernels, one time an execution", kernels, median=0.08, ninetieth=0.20), kernels),
        *_errors("kernels held out from fits", [p for p in kernels if p.measurement.is_held_out]),
        *_errors("kernels not held out", [p for p in kernels if not p.measurement.is_held_out]),
        *_errors("all rows with their counters", built, median=0.08, ninetieth=0.20),
        Figure(
            "Trn2 instructions and DMA packets, largest error", max(abs(p.error) for p in singles), "",
            Target("<=", 0.05), note=f"{len(singles)} timings",
        ),
        Figure("rank correlation over all rows", rank_correlation(built), "", Target(">=", 0.97)),
        Figure(
            "rank correlation over times", rank_correlation([p for p in times if p.measurement.unit == "ns"]),
            "", Target(">=", 0.97), note="one an execution",
        ),
        *(figure for label, group in _groups(built) for figure in _errors(label, group)[:1]),
        *front_end_figures(list(public.rows())),
    ]  # fmt: skip


def front_end_figures(rows: Sequence[public.Row]) -> list[Figure]:
    """Errors of published kernels as their authors wrote them; none without a checkout of them."""
    times = [row for row in rows if row.quantity == "latency"]
    moved = [row for row in rows if row.quantity.startswith("hbm_")]
    if not times:
        return []
    errors = sorted(abs(row.error) for row in times)
    kernels = {(row.kernel, row.parameters) for row in moved}
    close = kernels - {(row.kernel, row.parameters) for row in moved if abs(row.error) > 0.1}
    return [
        Figure(
            "through the front end: median error", statistics.median(errors), "", Target("<=", 0.06),
            note=f"{len(errors)} times",
        ),
        Figure("through the front end: 90th percentile", _percentile(errors), "", Target("<=", 0.15)),
        Figure(
            "through the front end: HBM bytes within 10 %", len(close), "kernels",
            Target(">=", len(kernels) - 1), note=f"of {len(kernels)}",
        ),
    ]  # fmt: skip


def one_per_execution(predictions: Sequence[Prediction]) -> list[Prediction]:
    """The first time of each execution and quantity: repeats, percentiles and counters left out."""
    seen: dict[tuple[object, ...], Prediction] = {}
    for prediction in predictions:
        row = prediction.measurement
        if row.quantity in TIMES:
            seen.setdefault((*row.execution, row.quantity), prediction)
    return list(seen.values())


def rank_correlation(predictions: Sequence[Prediction]) -> float:
    """Spearman's rank correlation of predicted and measured values, each in its own unit."""
    measured = _ranks([p.measurement.value for p in predictions])
    predicted = _ranks([p.predicted for p in predictions])
    return float(np.corrcoef(measured, predicted)[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 1, equal values sharing the mean of theirs."""
    _, inverse, counts = np.unique(np.array(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[inverse]


def _errors(
    label: str, predictions: Sequence[Prediction], median: float = 0.0, ninetieth: float = 0.0
) -> list[Figure]:
    errors = sorted(abs(p.error) for p in predictions)
    if not errors:
        return []
    high = _percentile(errors)
    note = f"{len(errors)} rows"
    return [
        Figure(
            f"{label}: median error", statistics.median(errors), "",
            Target("<=", median) if median else None, note=note,
        ),
        Figure(
            f"{label}: 90th percentile", high, "", Target("<=", ninetieth) if ninetieth else None, note=note
        ),
    ]  # fmt: skip


def _with_peer(figures: list[Figure], predictions: Sequence[Prediction]) -> list[Figure]:
    """Both errors beside those of the model without events, on the rows that it has an answer for."""
    errors = sorted(abs(p.busy_model_error) for p in predictions if math.isfinite(p.by_busy_model))
    values = statistics.median(errors), _percentile(errors)
    return [
        replace(figure, peer=Peer("busiest engine + 0.55 of the rest", value))
        for figure, value in zip(figures, values, strict=True)
    ]


def _percentile(ascending: Sequence[float]) -> float:
    """The 90th percentile: the least value that nine tenths do not exceed."""
    return ascending[math.ceil(0.9 * len(ascending)) - 1]


def _groups(predictions: Sequence[Prediction]) -> list[tuple[str, list[Prediction]]]:
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        row = prediction.measurement
        groups[row.target].append(prediction)
        groups[f"{row.target} {row.kernel}"].append(prediction)
        groups[row.quantity].append(prediction)
    return sorted(groups.items())


def print_rows(predictions: Sequence[Prediction]) -> None:
    """Every row with prediction and error, then what is not built and why."""
    for p in predictions:
        row = p.measurement
        if not p.reason:
            parameters = " ".join(f"{name}={value}" for name, value in row.parameters.items())
            held = "held out" if row.is_held_out else ""
            print(
                f"{row.name:>6} {row.target:5} {row.kernel:24} {parameters:55} {row.quantity:20} "
                f"{p.predicted:14.5g} {row.value:14.5g} {row.unit:8} {p.error:+8.1%} {held}"
            )
    for p in predictions:
        if p.reason:
            print(f"{p.measurement.name:>6} {p.measurement.target:5} {p.measurement.kernel:24} {p.reason}")


def print_public_rows(rows: Iterable[public.Row]) -> None:
    """Every published number of a kernel that went through the front end."""
    for row in rows:
        print(
            f"{row.kernel:20} {row.study or row.repository:24} {row.parameters:24} {row.dtype} {row.target} "
            f"{row.quantity:20} {row.predicted:14.5g} {row.measured:14.5g} {row.unit:8} {row.error:+8.1%}"
        )


if __name__ == "__main__":
    print_rows(predict(measurements()))
    print_public_rows(public.rows())
    sys.exit(0)
