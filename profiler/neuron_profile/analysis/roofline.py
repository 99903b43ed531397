"""Roofline: how fast each operation, module and line computes, against what chip and memory allow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from neuron_profile.analysis.source_frames import SourceFrame, load_frames
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_profile.analysis.time.logical_cores import physical_cores
from neuron_profile.analysis.time.numbering import Origin
from neuron_tools import hardware
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

LEVELS = {
    "operation": "coalesce({of}.framework_name, '')",
    "module": "coalesce({of}.layer, '')",
    "line": "coalesce({of}.source_file, '') || ':' || coalesce({of}.source_line, 0)",
    "hlo": "coalesce(hlo.hlo_opcode, '')",
}
WHOLE = "(whole profile)"
DTYPES = ("f32", "bf16", "fp8")
# Work of HLO operations, by what they are charged to: bytes by the shares of what was fused, FLOPs to the
# operation
# that multiplies. `tensor_flops` is that of the Tensor engine as so many bf16 ones: an fp32 product takes
# four passes.
_WORK = """
WITH summed AS (
    SELECT raw_hlo_id,
        sum(coalesce(psum_read_bytes, 0) + coalesce(psum_write_bytes, 0)) AS psum_bytes,
        sum(coalesce(raw_flops, 0) - coalesce(flops_transpose, 0)) AS own_flops,
        sum(coalesce(adjusted_flops, 0) - coalesce(adjusted_flops_transpose, 0)) AS tensor_flops
    FROM Instruction WHERE raw_hlo_id IS NOT NULL GROUP BY ALL
), operations AS (
    SELECT hlo.*, summed.*, coalesce(part.share, 1) AS share,
        coalesce(part.raw_framework_id, hlo.raw_framework_id) AS owner,
        coalesce(part.raw_framework_id, hlo.raw_framework_id) = hlo.raw_framework_id
            OR part.raw_framework_id IS NULL AS is_main
    FROM HloInstruction hlo LEFT JOIN summed USING (raw_hlo_id)
    LEFT JOIN {shares} part ON part.raw_hlo_id = hlo.raw_hlo_id
)
SELECT {key} AS name,
    sum(coalesce(nullif(hlo.model_flops, 0), hlo.own_flops, 0)) FILTER (is_main) AS flops,
    sum(coalesce(hlo.tensor_flops, 0)) FILTER (is_main) AS tensor_flops,
    sum(share * (coalesce(hlo.hbm_read_bytes, 0) + coalesce(hlo.hbm_write_bytes, 0))) AS hbm_bytes,
    sum(share * (coalesce(hlo.sbuf_read_bytes, 0) + coalesce(hlo.sbuf_write_bytes, 0))) AS sbuf_bytes,
    sum(share * coalesce(hlo.psum_bytes, 0)) AS psum_bytes
FROM operations hlo LEFT JOIN FrameworkInstruction operation ON operation.id = hlo.owner
GROUP BY name
"""
_NO_SHARES = (
    "(SELECT NULL::BIGINT AS raw_hlo_id, NULL::BIGINT AS raw_framework_id, NULL::DOUBLE AS share LIMIT 0)"
)
_MOVED = (
    "hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes", "psum_read_bytes",
    "psum_write_bytes",
)  # fmt: skip


@frozen
class Point:
    """One operation, module or line.

    Attributes:
        flops: Of the model, over all calls.
        hbm_bytes, sbuf_bytes, psum_bytes: Read and written.
        charged_ns: Device time that it is charged with, as everywhere.
        bound: What limits it: "compute", "HBM", "SBUF" or "PSUM".
        of_bound: Achieved part of that limit, 0 to 1.
    """

    name: str
    flops: int
    hbm_bytes: int
    sbuf_bytes: int
    psum_bytes: int
    charged_ns: float
    bound: str
    of_bound: float

    @property
    def intensity(self) -> float:
        """FLOPs per HBM byte; 0 where nothing was moved."""
        return self.flops / self.hbm_bytes if self.hbm_bytes else 0.0

    @property
    def flops_per_second(self) -> float:
        """Achieved rate."""
        return self.flops / self.charged_ns * 1e9


@frozen
class Roofline:
    """The limits of one NeuronCore, or of another device, and the points.

    Attributes:
        peak_flops: FLOP/s by element type.
        throttled_flops: The same while the Tensor engine is held back.
        hbm_bytes_per_second, sbuf_bytes_per_second, psum_bytes_per_second: Bandwidths; of SBUF and PSUM what
            engines and DMA move together at full rate; None for a device without them.
        device: Whose limits they are.
    """

    level: str
    peak_flops: Mapping[str, float]
    throttled_flops: Mapping[str, float]
    hbm_bytes_per_second: float
    sbuf_bytes_per_second: float | None
    psum_bytes_per_second: float | None
    points: tuple[Point, ...]
    device: str = "one NeuronCore"


def make_roofline(profile: Profile, level: str = "operation") -> Roofline:
    """The roofline of a profile.

    Args:
        level: One of `LEVELS`.
    """
    core = hardware.get(str(profile.metadata.get("target") or "trn2"))
    core = hardware.apply_settings(core, [str(setting) for setting in profile.metadata.get("settings") or ()])
    physical = physical_cores(profile)
    peaks = {dtype: physical * core.peak_flops(dtype) for dtype in DTYPES}
    share = core.throttle_idle / core.throttle_steps if core.throttle_steps else 1.0
    limits = {
        "compute": peaks["bf16"],
        "HBM": core.hbm_bandwidth,  # of the stack, which the physical cores share
        "SBUF": physical * hardware.sbuf_bandwidth(core),
        "PSUM": physical * hardware.psum_bandwidth(core),
    }
    rows = _points(profile, level) or ([] if profile.range_ns else _whole(profile))
    return Roofline(
        level, peaks, {name: rate * share for name, rate in peaks.items()}, limits["HBM"], limits["SBUF"],
        limits["PSUM"], tuple(_point(row, limits) for row in rows),
    )  # fmt: skip


def _points(profile: Profile, level: str) -> list[dict[str, Any]]:
    """Work and charged time of everything that has both; what was charged most first."""
    charged = _charged(profile, level)
    shares = _NO_SHARES if level == "hlo" else "FrameworkShare"
    key = "coalesce(CASE WHEN operation.id IS NULL THEN {hlo} ELSE {own} END, '')"
    expression = LEVELS[level]
    key = key.format(hlo=expression.format(of="hlo"), own=expression.format(of="operation"))
    rows = profile.query(_WORK.format(key=key, shares=shares)).to_pylist()
    found = [{**row, "charged_ns": charged.get(row["name"], 0.0)} for row in rows]
    found = [row for row in found if row["charged_ns"] > 0]
    return sorted(found, key=lambda row: (-row["charged_ns"], row["name"]))


def _charged(profile: Profile, level: str) -> Mapping[str, float]:
    """Charged time by the name of a point."""
    charges = charge_device_time(profile)
    if level == "hlo":
        return charges.hlo
    frames = load_frames(profile) if level == "line" else {}
    times: defaultdict[str, float] = defaultdict(float)
    for charge in charges.charges:
        times[_name(charge.origin, level, frames)] += charge.device_ns
    return times


def _name(origin: Origin, level: str, frames: Mapping[str, SourceFrame]) -> str:
    if level != "line":
        return origin.operation if level == "operation" else origin.module
    frame = frames.get(origin.stack)
    return f"{frame.file}:{frame.line}" if frame else ":0"


def _whole(profile: Profile) -> list[dict[str, Any]]:
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
    adjusted = metrics.get("adjusted_hardware_flops")
    tensor_flops = int(adjusted) - int(metrics.get("adjusted_transpose_flops") or 0) if adjusted else flops
    return [{"name": WHOLE, "flops": flops, "tensor_flops": tensor_flops, **numbers, "charged_ns": span_ns}]


def _point(row: Mapping[str, Any], limits: Mapping[str, float]) -> Point:
    charged_ns = float(row["charged_ns"])
    flops, tensor_flops = int(row["flops"] or 0), int(row["tensor_flops"] or 0)
    moved = {memory: round(row[f"{memory.lower()}_bytes"]) for memory in ("HBM", "SBUF", "PSUM")}
    amounts = {"compute": max(flops, tensor_flops), **moved}
    least_ns = {what: amount / limits[what] * 1e9 for what, amount in amounts.items()}
    bound = max(least_ns, key=lambda what: least_ns[what])
    return Point(
        str(row["name"]), flops, moved["HBM"], moved["SBUF"], moved["PSUM"], charged_ns, bound,
        min(1.0, least_ns[bound] / charged_ns),
    )  # fmt: skip
