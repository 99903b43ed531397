"""`torch_xla.debug.metrics`: how often graphs were compiled, run and looked at."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from neuron_tools.frontends.torch_xla import METRICS as _metrics

_FALLBACK = "aten::"


def counter_names() -> list[str]:
    """Names of the counters."""
    return sorted(_metrics.counters)


def counter_value(name: str) -> int | None:
    """A counter's value; None for one that was never counted."""
    return _metrics.counters.get(name)


def executed_fallback_ops() -> list[str]:
    """Names of the operators that ran on the CPU: nothing computes them on the device."""
    return [name for name in counter_names() if name.startswith(_FALLBACK)]


def metric_names() -> list[str]:
    """Names of the metrics."""
    return sorted(_metrics.samples)


def metric_data(name: str) -> tuple[int, float, list[tuple[float, float]]] | None:
    """Samples, their sum, and each as (0, value): durations in ns, data in bytes."""
    samples = _metrics.samples.get(name)
    if samples is None:
        return None
    return len(samples), float(sum(samples)), [(0.0, float(sample)) for sample in samples]


def clear_counters() -> None:
    """Set all counters back."""
    _metrics.counters.clear()


def clear_metrics() -> None:
    """Forget all durations and sizes."""
    _metrics.samples.clear()


def clear_all() -> None:
    """Forget everything."""
    _metrics.clear()


def metrics_report() -> str:
    """All metrics and counters as text."""
    return _report(metric_names(), counter_names())


def short_metrics_report(
    counter_names: Sequence[str] = ("CachedCompile", "UncachedCompile", "MarkStep"),
    metric_names: Sequence[str] = ("CompileTime", "ExecuteTime"),
) -> str:
    """Some metrics and counters as text.

    Args:
        counter_names: Counters that are told, where they were counted, and those of fallbacks.
        metric_names: Metrics that are told, where there are samples.
    """
    return _report(
        [name for name in metric_names if name in _metrics.samples],
        [*(name for name in counter_names if name in _metrics.counters), *executed_fallback_ops()],
    )


def _report(metrics: Iterable[str], counters: Iterable[str]) -> str:
    lines = []
    for name in metrics:
        samples = _metrics.samples[name]
        lines += [
            f"Metric: {name}",
            f"  TotalSamples: {len(samples)}",
            f"  Accumulator: {_shown(name, sum(samples))}",
            f"  Percentiles: 50%={_shown(name, statistics.median(samples))}",
        ]
    for name in counters:
        lines += [f"Counter: {name}", f"  Value: {_metrics.counters[name]}"]
    return "\n".join(lines) + "\n"


def compilation_causes() -> list[str]:
    """Why each graph was compiled, in order; a name of Neuron Tools."""
    return list(_metrics.causes)


def _shown(name: str, value: float) -> str:
    if name.startswith("RunCachedGraph"):
        return f"{value:g}"
    return f"{value / 1e6:.3f}ms" if name.endswith("Time") else f"{value / 1e3:.2f}KB"
