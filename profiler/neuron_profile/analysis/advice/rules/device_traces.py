"""Traces of other accelerators: streams without work, collectives and copies that nothing hides.

Such a trace holds no programs to simulate again: what a finding says could be saved at most stands with the
numbers that show it.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.traces.launches import find_stream_queues
from neuron_profile.analysis.traces.overview import TraceOverview, look_at_trace
from neuron_profile.reports.quantities import count, duration, percent
from neuron_tools.profile.reader import Profile

MINIMUM_SHARE = 0.05
SHORT_SHARE = 0.5
"""Part of the launches from which on many take the host longer than the device."""
_HIDE_COLLECTIVES = (
    "Start them as soon as their input is ready and compute meanwhile: smaller gradient buckets, "
    "prefetching of sharded parameters, asynchronous collectives."
)
_HIDE_COPIES = "Copy from pinned memory with non_blocking=True on a stream of its own, and prefetch batches."


def find(context: Context) -> Iterator[Finding]:
    """Findings where one of the causes takes a twentieth of the devices' time; none of a capture."""
    if context.device_ns:
        return
    trace = look_at_trace(context.profile)
    if trace is None or not trace.window_ns:
        return
    yield from _waiting_for_host(context.profile, trace)
    yield from _exposed(trace)


def _waiting_for_host(profile: Profile, trace: TraceOverview) -> Iterator[Finding]:
    """Idle time in which the busiest stream had nothing launched."""
    stream = max(trace.streams, key=lambda stream: stream.busy_ns)
    waiting_ns = min(stream.host_ns, trace.idle_ns)
    if waiting_ns < MINIMUM_SHARE * trace.window_ns:
        return
    queues = find_stream_queues(profile)
    launches, short = sum(queue.launches for queue in queues), sum(queue.short for queue in queues)
    is_short = launches and short >= SHORT_SHARE * launches
    remedy = (
        f"{short:,} of {count(launches, 'launch')} took the host longer than the device: compile the model "
        "or record its launches in one graph (torch.compile, CUDA graphs), and take larger batches."
        if is_short
        else "Take out what the host waits for (.item(), .cpu(), synchronize), and load data ahead."
    )
    yield Finding(
        "device_traces",
        f"The device waits for the host {percent(waiting_ns / trace.window_ns)} of the time",
        remedy,
        evidence={"waiting_ns": waiting_ns, "launches": launches, "short_launches": short},
    )


def _exposed(trace: TraceOverview) -> Iterator[Finding]:
    """Collectives and copies while nothing is computed."""
    times = [device.time for device in trace.devices]
    for what, exposed_ns, remedy in (
        ("Collectives", sum(time.exposed_communication_ns for time in times), _HIDE_COLLECTIVES),
        ("Copies", sum(time.exposed_memory_ns for time in times), _HIDE_COPIES),
    ):
        if exposed_ns >= MINIMUM_SHARE * trace.window_ns:
            title = f"{what} take {duration(exposed_ns)} in which nothing is computed"
            yield Finding("device_traces", title, remedy, evidence={"exposed_ns": exposed_ns})
