"""Roofline of an imported trace: work from the shapes of its operators, limits of the device it names."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass

from neuron_profile.analysis.roofline import Point, Roofline
from neuron_profile.analysis.traces.attribution import Attribution, attribute
from neuron_profile.analysis.traces.device_spans import Kind
from neuron_profile.analysis.traces.work import OperatorWork, operator_work
from neuron_tools.hardware.accelerators import Accelerator, find_accelerator
from neuron_tools.profile.reader import Profile

LEVELS = ("operation", "module")
_NAMES = "SELECT name FROM Device ORDER BY process_idx, device_idx"
_ARGUMENTS = "SELECT id, name, arguments_json FROM TraceSpan WHERE category = 'cpu_op'"
_FALLBACKS = {"fp16": "bf16", "fp8": "bf16", "tf32": "fp32", "fp64": "fp32", "fp32": "bf16"}
"""What an element type counts as on a device that has no rate of its own for it."""


@dataclass
class _Sum:
    """Work and time of the calls behind a point."""

    charged_ns: int = 0
    flops: int = 0
    byte_count: int = 0
    least_compute_s: float = 0.0


def make_trace_roofline(profile: Profile, level: str = "operation") -> Roofline | None:
    """The roofline of a trace's device.

    Time is that of the kernels that operators launched; one without shapes counts with its time alone.

    Args:
        level: "operation" or "module".

    Returns:
        None where no shapes were recorded, or the peaks of the device are not known.
    """
    accelerator = _accelerator(profile)
    if accelerator is None or level not in LEVELS:
        return None
    found = attribute(profile)
    works = _works(profile, found)
    if not works:
        return None
    points = tuple(_point(name, one, accelerator) for name, one in _sums(found, works, accelerator, level))
    ordered = tuple(sorted(points, key=lambda point: (-point.charged_ns, point.name)))
    return Roofline(
        level, accelerator.flops, {}, accelerator.bytes_per_second, None, None, ordered, accelerator.name
    )


def _accelerator(profile: Profile) -> Accelerator | None:
    """Of the first device whose peaks are known."""
    for row in profile.query(_NAMES).to_pylist():
        accelerator = find_accelerator(row["name"] or "")
        if accelerator is not None:
            return accelerator
    return None


def _works(profile: Profile, found: Attribution) -> dict[int, OperatorWork]:
    """Work of the operators that launched something, by id; each shape is computed once."""
    launching = set(found.operator_id.tolist())
    work_of = functools.cache(operator_work)
    works = {}
    for batch in profile.query(_ARGUMENTS).to_batches():
        columns = (batch.column(name).to_pylist() for name in ("id", "name", "arguments_json"))
        for number, name, arguments in zip(*columns):
            if number in launching:
                work = work_of(name, arguments)
                if work is not None:
                    works[number] = work
    return works


def _sums(
    found: Attribution, works: dict[int, OperatorWork], accelerator: Accelerator, level: str
) -> list[tuple[str, _Sum]]:
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    names = found.operators if level == "operation" else found.modules
    seen: set[int] = set()
    rows = zip(
        names, found.operator_id.tolist(), found.duration_ns.tolist(), found.kind.tolist(), found.kernels
    )
    for name, operator, duration_ns, kind, kernel in rows:
        if kind != int(Kind.COMPUTE):
            continue
        own = sums[name]
        own.charged_ns += duration_ns
        work = works.get(operator)
        if work is None or operator in seen:
            continue
        seen.add(operator)  # an operator that launches several kernels does its work once
        own.flops += work.flops
        own.byte_count += work.byte_count
        own.least_compute_s += work.flops / _rate(accelerator, work.dtype, kernel)
    return list(sums.items())


def _rate(accelerator: Accelerator, dtype: str, kernel: str) -> float:
    """Peak for an element type; fp32 products may run as tf32, which the kernel's name tells."""
    wanted = "tf32" if dtype == "fp32" and "tf32" in kernel.lower() else dtype
    while wanted and wanted not in accelerator.flops:
        wanted = _FALLBACKS.get(wanted, "") if wanted != "bf16" else ""
    return accelerator.flops[wanted] if wanted else max(accelerator.flops.values())


def _point(name: str, found: _Sum, accelerator: Accelerator) -> Point:
    least = {"compute": found.least_compute_s, "HBM": found.byte_count / accelerator.bytes_per_second}
    bound = max(least, key=lambda what: least[what])
    reached = min(1.0, least[bound] * 1e9 / found.charged_ns) if found.charged_ns else 0.0
    return Point(
        name, found.flops, found.byte_count, 0, 0, float(found.charged_ns),
        bound if least[bound] else "unknown", reached,
    )  # fmt: skip
