"""Roofline: how fast each operation, module and line computes, against what chip and memory allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neuron_tools import hardware
from neuron_tools.profile.reader import Profile

LEVELS = {
    "operation": "coalesce(framework_name, '')",
    "module": "coalesce(layer, '')",
    "line": "coalesce(source_file, '') || ':' || coalesce(source_line, 0)",
    "hlo": "coalesce(hlo_opcode, '')",
}
WHOLE = "(whole profile)"
DTYPES = ("f32", "bf16", "fp8")
_POINTS = """
SELECT {key} AS name, sum(coalesce(model_flops, 0)) AS flops,
    sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0)) AS hbm_bytes,
    sum(coalesce(sbuf_read_bytes, 0) + coalesce(sbuf_write_bytes, 0)) AS sbuf_bytes,
    sum(end_ts - start_ts) AS span_ns
FROM HloInstruction GROUP BY ALL HAVING sum(end_ts - start_ts) > 0 ORDER BY span_ns DESC, name
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One operation, module or line.

    Attributes:
        flops: Of the model, over all calls.
        hbm_bytes, sbuf_bytes: Read and written.
        span_ns: Sum of its HLO spans.
        bound: What limits it: "compute" or "HBM".
        of_bound: Achieved part of that limit, 0 to 1.
    """

    name: str
    flops: int
    hbm_bytes: int
    sbuf_bytes: int
    span_ns: int
    bound: str
    of_bound: float

    @property
    def intensity(self) -> float:
        """FLOPs per HBM byte; 0 where nothing was moved."""
        return self.flops / self.hbm_bytes if self.hbm_bytes else 0.0

    @property
    def flops_per_second(self) -> float:
        """Achieved rate."""
        return self.flops / self.span_ns * 1e9


@dataclass(frozen=True, slots=True)
class Roofline:
    """The limits of one NeuronCore, and the points.

    Attributes:
        peak_flops: FLOP/s by element type.
        throttled_flops: The same while the Tensor engine is held back.
        hbm_bytes_per_second: Bandwidth.
    """

    level: str
    peak_flops: Mapping[str, float]
    throttled_flops: Mapping[str, float]
    hbm_bytes_per_second: float
    points: tuple[Point, ...]


def make_roofline(profile: Profile, level: str = "operation") -> Roofline:
    """The roofline of a profile.

    Args:
        level: One of `LEVELS`.
    """
    core = hardware.get(str(profile.metadata.get("target") or "trn2"))
    core = hardware.apply_settings(core, [str(setting) for setting in profile.metadata.get("settings") or ()])
    peaks = {dtype: core.peak_flops(dtype) for dtype in DTYPES}
    share = core.throttle_idle / core.throttle_steps if core.throttle_steps else 1.0
    peak = max(peaks.values())
    rows = profile.query(_POINTS.format(key=LEVELS[level])).to_pylist() or _whole(profile)
    return Roofline(
        level, peaks, {name: rate * share for name, rate in peaks.items()}, core.hbm_bandwidth,
        tuple(_point(row, peak, core.hbm_bandwidth) for row in rows),
    )  # fmt: skip


def _whole(profile: Profile) -> list[dict[str, int]]:
    """One point of all that ran, from the summary: for profiles without HLO operations."""
    metrics = profile.summary()
    span_ns = round(float(metrics.get("total_time") or 0.0) * 1e9)
    if not span_ns or "hbm_read_bytes" not in metrics:
        return []
    names = ("hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes")
    read, written, sbuf_read, sbuf_written = (int(metrics.get(name) or 0) for name in names)
    flops = int(metrics.get("hardware_flops") or 0) - int(metrics.get("transpose_flops") or 0)
    numbers = {"hbm_bytes": read + written, "sbuf_bytes": sbuf_read + sbuf_written, "span_ns": span_ns}
    return [{"name": WHOLE, "flops": flops, **numbers}]  # type: ignore[dict-item]


def _point(row: Mapping[str, int], peak: float, bandwidth: float) -> Point:
    flops, hbm_bytes, span_ns = int(row["flops"]), int(row["hbm_bytes"]), int(row["span_ns"])
    compute_ns, memory_ns = flops / peak * 1e9, hbm_bytes / bandwidth * 1e9
    bound = "compute" if compute_ns >= memory_ns else "HBM"
    return Point(
        str(row["name"]), flops, hbm_bytes, int(row["sbuf_bytes"]), span_ns, bound,
        min(1.0, max(compute_ns, memory_ns) / span_ns),
    )  # fmt: skip
