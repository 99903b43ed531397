"""Counters of the hardware by operator: what CUPTI counted in each kernel, laid on who launched it.

torch.profiler measures them kernel by kernel (`cuda_profiler_range`), one kernel after the other; the ranges'
durations say nothing. A range names no launch: the n-th one of a process is that of its n-th launch, where it
has as many of both.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.time.core_spans import integers
from neuron_profile.analysis.traces.attribution import OPERATORS, HostSpans, host_spans
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_RANGES = """
SELECT process_idx AS process, arguments_json FROM TraceSpan WHERE category = 'cuda_profiler_range'
ORDER BY process_idx, start_ts, id
"""
_LAUNCHES = """
SELECT span.process_idx AS process, span.track_idx AS track, start_ts AS called_ts FROM TraceSpan span
JOIN TraceTrack track ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
WHERE track.device_idx IS NULL AND category IN ('cuda_runtime', 'cuda_driver')
    AND regexp_matches(span.name, '{names}') ORDER BY span.process_idx, start_ts, span.id
"""
_LAUNCHING = ("^cudaLaunch(Cooperative)?Kernel", "^(cuda|cu)Launch(Cooperative)?Kernel")
"""Calls that launch one kernel: of the runtime, then those of the driver too."""
# FLOPs of each instruction of a thread, by the metric that counts them; HolisticTraceAnalysis has the same
# (hta/analyzers/cupti_counter_analysis.py).
_FLOPS = {
    f"smsp__sass_thread_inst_executed_op_{kind}{name}_pred_on.sum": count
    for kind in "hfd"
    for name, count in (("add", 1), ("mul", 1), ("fma", 2))
}


@frozen
class CountedOperator:
    """One operator whose kernels were counted.

    Attributes:
        operator: The innermost that was open at the launch; "" where it is not known.
        outermost: The outermost one.
        flops: From the counted instructions, two for a fused multiplication and addition; 0 where they were
            not counted.
    """

    operator: str
    outermost: str
    kernels: int
    flops: int


@frozen
class OperatorCounter:
    """One counter over an operator's kernels: the sum tells of counts, the mean of rates and shares."""

    operator: str
    counter: str
    kernels: int
    total: float
    per_kernel: float


@frozen
class CountedOperators:
    """Operators by falling FLOPs and kernels, and their counters in the same order.

    Attributes:
        unknown: Kernels whose operator is not known.
    """

    unknown: int
    operators: tuple[CountedOperator, ...]
    counters: tuple[OperatorCounter, ...]


@dataclass
class _Sum:
    """What was counted under one operator."""

    kernels: int = 0
    flops: float = 0.0

    def __post_init__(self) -> None:
        self.counters: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, counted: dict[str, float]) -> None:
        """One more kernel."""
        self.kernels += 1
        self.flops += sum(_FLOPS.get(name, 0) * value for name, value in counted.items())
        for name, value in counted.items():
            self.counters[name].append(value)


def find_counters(profile: Profile) -> CountedOperators | None:
    """Counters by operator; None where none were measured."""
    rows = profile.query(_RANGES)
    counted = [_numbers(text) for text in rows["arguments_json"].to_pylist()]
    if not any(counted):
        return None
    sums: defaultdict[tuple[str, str], _Sum] = defaultdict(_Sum)
    for names, numbers in zip(_operators(profile, integers(rows, "process")), counted):
        sums[names].add(numbers)
    ordered = sorted(sums.items(), key=lambda entry: (-entry[1].flops, -entry[1].kernels, entry[0]))
    return CountedOperators(
        sum(found.kernels for names, found in ordered if not names[0]),
        tuple(CountedOperator(*names, found.kernels, round(found.flops)) for names, found in ordered),
        tuple(
            OperatorCounter(names[0], counter, len(values), sum(values), sum(values) / len(values))
            for names, found in ordered
            for counter, values in sorted(found.counters.items())
        ),
    )


def _operators(profile: Profile, of_range: Ints) -> list[tuple[str, str]]:
    """Innermost and outermost operator of each range; "" where launches and ranges do not go together."""
    inner = host_spans(profile, OPERATORS)
    outer = inner.outermost()
    names = [("", "")] * len(of_range)
    for process in np.unique(of_range).tolist():
        places = np.flatnonzero(of_range == process)
        for pattern in _LAUNCHING:
            launches = profile.query(_LAUNCHES.format(names=pattern))
            launches = launches.filter(pa.array(integers(launches, "process") == process))
            if launches.num_rows == len(places):
                for place, pair in zip(places.tolist(), _open_at(inner, outer, launches)):
                    names[place] = pair
                break
    return names


def _open_at(inner: HostSpans, outer: HostSpans, launches: pa.Table) -> Sequence[tuple[str, str]]:
    when = tuple(integers(launches, name) for name in ("process", "track", "called_ts"))
    return list(zip(inner.names_at(*when), outer.names_at(*when)))


def _numbers(text: str | None) -> dict[str, float]:
    """Counters among the arguments of a range."""
    found = json.loads(text) if text else {}
    return {name: float(value) for name, value in found.items() if type(value) in (int, float)}
