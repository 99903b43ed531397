"""Predictions of whole models beside what was measured: an error for each row, and what holds of all."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from scipy.stats import spearmanr

from benchmarks.figures import Figure, Peer, Target
from benchmarks.whole_model_rows.row import Row
from neuron_tools.frozen import frozen

MEDIAN, LARGEST, FIRST_TOKEN, RANKS_ALIKE = 0.10, 0.25, 0.20, 0.97


@frozen
class Case:
    """A row, its time, and how that is predicted."""

    row: Row
    predict: Callable[[], Prediction]
    measured_ns: float


@frozen
class Prediction:
    """Times in ns: simulated, and by the roofline."""

    time_ns: float
    roofline_ns: float


def row_figure(case: Case, found: Prediction) -> Figure:
    error, roofline = (100 * value for value in _errors(case, found))
    limit = 100 * (FIRST_TOKEN if case.row.quantity == "ttft" else LARGEST)
    note = (f"{found.time_ns / 1e3:,.0f} us, measured {case.measured_ns / 1e3:,.0f} us, "
            f"Neuron {case.row.version}; held where within {limit:.0f} %")  # fmt: skip
    target = Target("<=", limit) if error >= 0 else Target(">=", -limit)
    return Figure(case.row.label, error, "%", target, Peer("roofline", roofline), note)


def _errors(case: Case, found: Prediction) -> tuple[float, float]:
    """How far the simulated time and the roofline are off, as parts of the measured time."""
    return found.time_ns / case.measured_ns - 1, found.roofline_ns / case.measured_ns - 1


def summary(predictions: Sequence[tuple[Case, Prediction]]) -> list[Figure]:
    """What holds of encoders, vision models and tokens after the first; first tokens stand for themselves."""
    judged = [(case, found) for case, found in predictions if case.row.quantity != "ttft"]
    errors = [tuple(abs(value) for value in _errors(case, found)) for case, found in judged]
    ours, roofline = (list(column) for column in zip(*errors))
    nearer = sum(own < other for own, other in errors)
    measured = [case.measured_ns for case, _ in judged]
    alike, roofs_alike = (
        _rank_correlation(measured, times)
        for times in ([found.time_ns for _, found in judged], [found.roofline_ns for _, found in judged])
    )
    return [
        Figure("median error", 100 * statistics.median(ours), "%", Target("<=", 100 * MEDIAN),
               Peer("roofline", 100 * statistics.median(roofline))),
        Figure("largest error", 100 * max(ours), "%", Target("<=", 100 * LARGEST),
               Peer("roofline", 100 * max(roofline))),
        Figure("rows nearer than the roofline", nearer, f"of {len(errors)}", Target(">=", len(errors))),
        Figure("rank correlation", alike, "", Target(">=", RANKS_ALIKE), Peer("roofline", roofs_alike)),
    ]  # fmt: skip


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's, of two lists of one order; 1 for a single pair."""
    return float(spearmanr(first, second).statistic) if len(first) > 1 else 1.0
