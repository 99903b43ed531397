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
# Operations of one graph overlap: a moment in which several of a point's run counts once.
_POINTS = """
WITH spans AS (
    SELECT *, {key} AS name, coalesce(process_idx, 0) AS process,
        max(end_ts) OVER (
            PARTITION BY {key}, coalesce(process_idx, 0), coalesce(pcore_idx, 0) ORDER BY start_ts, end_ts
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_until
    FROM HloInstruction
), operations AS (
    SELECT name, process, raw_hlo_id,
        sum(coalesce(model_flops, 0)) AS flops,
        sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0)) AS hbm_bytes,
        sum(coalesce(sbuf_read_bytes, 0) + coalesce(sbuf_write_bytes, 0)) AS sbuf_bytes,
        sum(greatest(0, end_ts - greatest(start_ts, coalesce(covered_until, start_ts)))) AS span_ns
    FROM spans GROUP BY ALL
), summed AS (
    SELECT coalesce(process_idx, 0) AS process, raw_hlo_id,
        sum(coalesce(psum_read_bytes, 0) + coalesce(psum_write_bytes, 0)) AS psum_bytes
    FROM Instruction WHERE raw_hlo_id IS NOT NULL GROUP BY ALL
)
SELECT name, sum(flops) AS flops, sum(hbm_bytes) AS hbm_bytes, sum(sbuf_bytes) AS sbuf_bytes,
    coalesce(sum(psum_bytes), 0) AS psum_bytes, sum(span_ns) AS span_ns
FROM operations LEFT JOIN summed USING (process, raw_hlo_id)
GROUP BY name HAVING sum(span_ns) > 0 ORDER BY span_ns DESC, name
"""
_MOVED = (
    "hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes", "psum_read_bytes",
    "psum_write_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """One operation, module or line.

    Attributes:
        flops: Of the model, over all calls.
        hbm_bytes, sbuf_bytes, psum_bytes: Read and written.
        span_ns: Time in which one of its HLO operations ran.
        bound: What limits it: "compute", "HBM", "SBUF" or "PSUM".
        of_bound: Achieved part of that limit, 0 to 1.
    """

    name: str
    flops: int
    hbm_bytes: int
    sbuf_bytes: int
    psum_bytes: int
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
        hbm_bytes_per_second, sbuf_bytes_per_second, psum_bytes_per_second: Bandwidths; of SBUF and PSUM what
            engines and DMA move together at full rate.
    """

    level: str
    peak_flops: Mapping[str, float]
    throttled_flops: Mapping[str, float]
    hbm_bytes_per_second: float
    sbuf_bytes_per_second: float
    psum_bytes_per_second: float
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
    limits = {
        "compute": max(peaks.values()),
        "HBM": core.hbm_bandwidth,
        "SBUF": hardware.sbuf_bandwidth(core),
        "PSUM": hardware.psum_bandwidth(core),
    }
    rows = profile.query(_POINTS.format(key=LEVELS[level])).to_pylist() or _whole(profile)
    return Roofline(
        level, peaks, {name: rate * share for name, rate in peaks.items()}, limits["HBM"], limits["SBUF"],
        limits["PSUM"], tuple(_point(row, limits) for row in rows),
    )  # fmt: skip


def _whole(profile: Profile) -> list[dict[str, int]]:
    """One point of all that ran, from the summary: for profiles without HLO operations."""
    metrics = profile.summary()
    span_ns = round(float(metrics.get("total_time") or 0.0) * 1e9)
    if not span_ns or "hbm_read_bytes" not in metrics:
        return []
    moved = {name: int(metrics.get(name) or 0) for name in _MOVED}
    numbers = {
        f"{memory}_bytes": moved[f"{memory}_read_bytes"] + moved[f"{memory}_write_bytes"]
        for memory in ("hbm", "sbuf", "psum")
    }
    flops = int(metrics.get("hardware_flops") or 0) - int(metrics.get("transpose_flops") or 0)
    return [{"name": WHOLE, "flops": flops, **numbers, "span_ns": span_ns}]  # type: ignore[dict-item]


def _point(row: Mapping[str, int], limits: Mapping[str, float]) -> Point:
    flops, span_ns = int(row["flops"]), int(row["span_ns"])
    hbm_bytes, sbuf_bytes, psum_bytes = (int(row[f"{memory}_bytes"]) for memory in ("hbm", "sbuf", "psum"))
    amounts = {"compute": flops, "HBM": hbm_bytes, "SBUF": sbuf_bytes, "PSUM": psum_bytes}
    least_ns = {what: amount / limits[what] * 1e9 for what, amount in amounts.items()}
    bound = max(least_ns, key=lambda what: least_ns[what])
    return Point(
        str(row["name"]), flops, hbm_bytes, sbuf_bytes, psum_bytes, span_ns, bound,
        min(1.0, least_ns[bound] / span_ns),
    )  # fmt: skip
