"""What an imported trace shows, in words: what ran where, what it waited for, and what was not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from neuron_profile.analysis.traces.breakdown import Kernel
from neuron_profile.analysis.traces.overview import CounterPeak, DeviceUse, TraceOverview
from neuron_profile.reports.quantities import count, duration, percent, scaled

BUSY_SHARE, IDLE_SHARE = 0.9, 0.6  # as for captures: above the first the device decides, below the second not
KERNELS, COUNTERS = 10, 12
UNKNOWN = "unknown"


def trace_verdict(trace: TraceOverview) -> str:
    """What the devices waited for, in one sentence."""
    if not trace.devices:
        return _without_devices(trace)
    subject, verb = ("The device", "was") if len(trace.devices) == 1 else ("The devices", "were")
    busy = f"{subject} {verb} busy {percent(trace.busy_share)} of the time"
    alone = sum(device.time.exposed_communication_ns for device in trace.devices)
    told = [f"{busy}, {percent(alone / trace.window_ns)} with collectives alone"] if alone else [busy]
    if trace.busy_share < BUSY_SHARE:
        told.append(f"; idle time is mostly {_reason(trace)}")
    return "".join(told) + "."


def _without_devices(trace: TraceOverview) -> str:
    """What a trace of the host alone, or of counters alone, has most of."""
    if trace.counters:
        peak = trace.counters[0]
        what = f"{count(trace.host.spans, 'mark')} and counters" if trace.host.spans else "Counters alone"
        return f"{what}: {peak.name} was highest with {_value(peak)} at {duration(peak.highest_ns)}."
    told = f"No device in this trace: {count(trace.host.spans, 'span')} of the host alone"
    longest = trace.host.longest
    if longest is None or not longest.total_ns:
        return f"{told}."
    took = f"{duration(longest.total_ns)} in {count(longest.calls, 'call')}"
    return f"{told}; most time in {longest.name} ({took})."


def _value(peak: CounterPeak) -> str:
    return scaled(peak.highest, "B") if peak.unit == "bytes" else f"{peak.highest:,.6g} {peak.unit}".strip()


def _reason(trace: TraceOverview) -> str:
    """The reason that most of the idle time of the busiest stream has."""
    stream = max(trace.streams, key=lambda stream: stream.busy_ns)
    reasons = {
        "the host's: the next kernel was not launched yet": stream.host_ns,
        "short gaps between launched kernels": stream.launch_ns,
        "waiting for other streams, events or copies": stream.other_ns,
    }
    return max(reasons, key=lambda reason: reasons[reason])


def trace_rows(trace: TraceOverview) -> list[tuple[str, str]]:
    """Names and values of the totals."""
    return [
        *_device_rows(trace), *_time_rows(trace), *_host_rows(trace), *_counter_rows(trace),
        *_lack_rows(trace),
    ]  # fmt: skip


def device_title(device: DeviceUse) -> str:
    """The model and number of a device, and the rank that used it."""
    number = f" (device {device.device})" if device.is_named else ""
    rank = "" if device.rank is None else f", rank {device.rank}"
    return f"{device.name}{number}{rank}"


def _device_rows(trace: TraceOverview) -> Iterator[tuple[str, str]]:
    for place, device in enumerate(trace.devices):
        parts = [
            count(device.streams, "stream"), count(device.kernels, device.computes),
            count(device.copies, "copy"), count(device.collectives, "collective"),
        ]  # fmt: skip
        heading = ("Device" if len(trace.devices) == 1 else "Devices") if not place else ""
        yield heading, f"{device_title(device)}: {', '.join(parts)}"


def _time_rows(trace: TraceOverview) -> Iterator[tuple[str, str]]:
    if not trace.devices:
        return
    whole = trace.window_ns
    times = [device.time for device in trace.devices]
    shares = {
        "computing": sum(time.computing_ns for time in times),
        "collectives alone": sum(time.exposed_communication_ns for time in times),
        "copies alone": sum(time.exposed_memory_ns for time in times),
        "idle": trace.idle_ns,
    }
    told = ", ".join(f"{name} {percent(share / whole)}" for name, share in shares.items() if whole)
    yield "Device time", f"{duration(whole)}: {told}"
    communication, hidden = sum(t.communication_ns for t in times), sum(t.hidden_ns for t in times)
    if communication:
        yield (
            "Collectives",
            f"{duration(communication)}, {percent(hidden / communication)} hidden by computing",
        )


def _host_rows(trace: TraceOverview) -> Iterator[tuple[str, str]]:
    host = trace.host
    if host.spans:
        operators = f", {count(host.operators, 'operator')}" if host.operators else ""
        yield "Host", f"{duration(host.window_ns)} on {count(host.threads, 'thread')}{operators}"
    sizes = sorted({device.memory_bytes for device in trace.devices if device.memory_bytes})
    if sizes:
        yield "Device memory", " and ".join(scaled(float(size), "B") for size in sizes)


def _counter_rows(trace: TraceOverview) -> Iterator[tuple[str, str]]:
    for place, peak in enumerate(trace.counters[:COUNTERS]):
        yield "" if place else "Highest", f"{peak.name}: {_value(peak)} at {duration(peak.highest_ns)}"


def _lack_rows(trace: TraceOverview) -> Iterator[tuple[str, str]]:
    for place, lack in enumerate(trace.lacks):
        yield "" if place else "Not recorded", f"{lack.what}: {lack.remedy}"


def kernel_table(kernels: Iterable[Kernel], whole_ns: int) -> RenderableType:
    """The kernels that take longest, copies and collectives too."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("Kernel")
    for name in ("Kind", "Calls", "Time", "Share"):
        table.add_column(name, justify="left" if name == "Kind" else "right", no_wrap=True)
    for kernel in list(kernels)[:KERNELS]:
        table.add_row(
            Text(kernel.name, overflow="ellipsis", no_wrap=True), kernel.kind, f"{kernel.calls:,}",
            duration(kernel.total_ns), percent(kernel.total_ns / whole_ns) if whole_ns else "",
        )  # fmt: skip
    return Group(table, "")
