"""Everything that a summary shows: what ran, how well it used the chip, and where time went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuron_profile.analysis.compiler_changes import PassChange, find_compiler_changes
from neuron_profile.analysis.expected import ExpectedTimes, expected_times, is_simulated
from neuron_profile.analysis.host_activity import HostIdle, find_host_idle
from neuron_profile.analysis.hotspots import Hotspots, find_hotspots
from neuron_profile.analysis.kernel_charges import KernelLine, find_kernel_lines
from neuron_profile.analysis.memory_holders import CategoryBytes, by_category, find_memory_holders
from neuron_profile.analysis.occupancy import Occupancy, measure_occupancy
from neuron_profile.analysis.serving import Serving, measure_serving
from neuron_profile.analysis.source_frames import SourceTexts
from neuron_profile.analysis.time.active import engine_active_ns
from neuron_profile.analysis.traces.overview import TraceOverview, look_at_trace
from neuron_profile.analysis.transfers import (
    HostTransfers,
    MemoryPeak,
    find_memory_peaks,
    measure_host_transfers,
)
from neuron_profile.analysis.warnings import ProfileWarning, find_warnings
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

# ActiveTime.engine, the prefix of the engine's published metrics, and its title.
ENGINES = (
    ("tensor", "tensor_engine", "Tensor"),
    ("vector", "vector_engine", "Vector"),
    ("scalar", "scalar_engine", "Scalar"),
    ("gpsimd", "gpsimd_engine", "GpSimd"),
    ("sync", "sync_engine", "Sync"),
    ("dma", "dma", "DMA"),
    ("cc", "cc_op", "Collectives"),
)


@frozen
class EngineUse:
    """An engine's active time over all NeuronCores, and what it is a part of (0-1).

    Of the physical cores of a logical one that did anything it is the mean.

    Attributes:
        of_total: Part of the total time, which has the idle gaps between executions in it.
        of_device: Part of the time in which the device executed something.
    """

    name: str
    active_ns: int
    of_total: float
    of_device: float


@dataclass(frozen=True)
class Overview:
    """The content of a summary.

    Attributes:
        metrics: The published summary metrics.
        held: What the memory of each peak was held for.
        host_idle: What the host did while the device was idle; None where it was not sampled.
        kernel_lines: Lines inside NKI kernels by falling device time.
        compiler_changes: What the compiler of NKI kernels changed of what is written.
        trace: What another tool's trace shows; None where there is none.
        expected: Where the chip's times are expected; None where those shown are no predictions.
    """

    metrics: Mapping[str, Any]
    occupancy: Occupancy
    engines: tuple[EngineUse, ...]
    hotspots: Hotspots
    transfers: HostTransfers
    memory: tuple[MemoryPeak, ...]
    held: tuple[CategoryBytes, ...]
    warnings: tuple[ProfileWarning, ...]
    texts: SourceTexts
    serving: Serving | None = None
    host_idle: HostIdle | None = None
    kernel_lines: tuple[KernelLine, ...] = ()
    compiler_changes: tuple[PassChange, ...] = ()
    trace: TraceOverview | None = None
    expected: ExpectedTimes | None = None

    @property
    def total_ns(self) -> float:
        """From the first to the last device span, idle gaps included."""
        return float(self.metrics.get("total_time") or 0.0) * 1e9

    @property
    def is_foreign(self) -> bool:
        """Whether all that it shows is another tool's trace: nothing was executed on a NeuronCore."""
        return self.trace is not None and not self.occupancy.executions and not self.metrics.get("total_time")

    @property
    def is_device_alone(self) -> bool:
        """Whether the device alone was profiled: its instructions are there, but no execution by a host."""
        return not self.occupancy.executions and bool(self.metrics.get("total_time"))

    @property
    def active_share(self) -> float | None:
        """Part of the total time in which anything was active on the device; None where nobody says."""
        share = self.metrics.get("total_active_time_percent")
        return None if share is None else float(share)

    def while_busy(self, metric: str) -> float:
        """A utilization metric of the total time, taken over the device time instead.

        The metric relates the work of all NeuronCores to the total time of each; 0 where it is not known.
        """
        device_ns, core_ns = self.occupancy.device_ns, self.total_ns * self.occupancy.cores
        return float(self.metrics.get(metric) or 0.0) * core_ns / device_ns if device_ns else 0.0


def make_overview(profile: Profile) -> Overview:
    """Compute the overview of a profile."""
    metrics, occupancy = profile.summary(), measure_occupancy(profile)
    hotspots = find_hotspots(profile)
    return Overview(
        metrics=metrics,
        occupancy=occupancy,
        engines=engine_use(profile, metrics, occupancy),
        hotspots=hotspots,
        transfers=measure_host_transfers(profile),
        memory=find_memory_peaks(profile),
        held=by_category(find_memory_holders(profile)),
        warnings=find_warnings(profile),
        texts=SourceTexts(profile),
        serving=measure_serving(profile),
        host_idle=find_host_idle(profile),
        kernel_lines=find_kernel_lines(profile),
        compiler_changes=find_compiler_changes(profile),
        trace=look_at_trace(profile),
        expected=expected_times(hotspots) if is_simulated(profile) else None,
    )


def engine_use(profile: Profile, metrics: Mapping[str, Any], occupancy: Occupancy) -> tuple[EngineUse, ...]:
    """Use of each engine that was active at all.

    Of a whole profile without executions the active time is that of its Summary: an imported one's own tool
    measured it; all of its time is the device's.
    """
    active = engine_active_ns(profile)
    total_ns = _window_ns(profile, metrics) * max(occupancy.cores, 1)
    if not occupancy.executions and profile.range_ns is None:
        active |= {
            engine: round(float(metrics[f"{prefix}_active_time"]) * 1e9)
            for engine, prefix, _ in ENGINES
            if metrics.get(f"{prefix}_active_time") is not None
        }
    device_ns = occupancy.device_ns if occupancy.executions else total_ns
    return tuple(
        EngineUse(
            title, active[engine], active[engine] / total_ns if total_ns else 0.0,
            active[engine] / device_ns if device_ns else 0.0,
        )
        for engine, _, title in ENGINES
        if active.get(engine)
    )  # fmt: skip


def _window_ns(profile: Profile, metrics: Mapping[str, Any]) -> float:
    """Length of the range, or from the first to the last device span."""
    if profile.range_ns is not None:
        return profile.range_ns[1] - profile.range_ns[0]
    return float(metrics.get("total_time") or 0.0) * 1e9
