"""Everything that a summary shows: what ran, how well it used the chip, and where time went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuron_profile.analysis.hotspots import Hotspots, find_hotspots
from neuron_profile.analysis.occupancy import Occupancy, measure_occupancy
from neuron_profile.analysis.source_frames import SourceTexts
from neuron_profile.analysis.transfers import (
    HostTransfers,
    MemoryPeak,
    find_memory_peaks,
    measure_host_transfers,
)
from neuron_profile.analysis.warnings import ProfileWarning, find_warnings
from neuron_tools.profile.reader import Profile

# Column prefix of the published summary metrics, and the engine's name.
ENGINES = {
    "tensor_engine": "Tensor",
    "vector_engine": "Vector",
    "scalar_engine": "Scalar",
    "gpsimd_engine": "GpSimd",
    "sync_engine": "Sync",
    "dma": "DMA",
    "cc_op": "Collectives",
}


@dataclass(frozen=True, slots=True)
class EngineUse:
    """An engine's active time, and its part of the device's total time (0-1)."""

    name: str
    active_ns: int
    fraction: float


@dataclass(frozen=True)
class Overview:
    """The content of a summary.

    Attributes:
        metrics: The published summary metrics.
    """

    metrics: Mapping[str, Any]
    occupancy: Occupancy
    engines: tuple[EngineUse, ...]
    hotspots: Hotspots
    transfers: HostTransfers
    memory: tuple[MemoryPeak, ...]
    warnings: tuple[ProfileWarning, ...]
    texts: SourceTexts


def make_overview(profile: Profile) -> Overview:
    """Compute the overview of a profile."""
    metrics = profile.summary()
    return Overview(
        metrics=metrics,
        occupancy=measure_occupancy(profile),
        engines=engine_use(metrics),
        hotspots=find_hotspots(profile),
        transfers=measure_host_transfers(profile),
        memory=find_memory_peaks(profile),
        warnings=find_warnings(profile),
        texts=SourceTexts(profile),
    )


def engine_use(metrics: Mapping[str, Any]) -> tuple[EngineUse, ...]:
    """Use of each engine that the metrics know; collectives only where there were any."""
    found = []
    for prefix, name in ENGINES.items():
        active_seconds = metrics.get(f"{prefix}_active_time")
        if active_seconds is None or (prefix == "cc_op" and not active_seconds):
            continue
        fraction = float(metrics.get(f"{prefix}_active_time_percent") or 0.0)
        found.append(EngineUse(name, round(active_seconds * 1e9), fraction))
    return tuple(found)
