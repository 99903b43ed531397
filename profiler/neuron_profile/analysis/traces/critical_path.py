"""The critical path of an imported trace: what, one after the other, made it take as long as it did.

It is walked back from the last thing that happened. A device span came after the one before it on its
stream, or after its launch if that was later; a host thread after the device where it waited for it, else
after itself. The stretches add up to the length of the trace exactly. Waits of one stream for another are not
in such traces and count as gaps between spans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuron_profile.analysis.critical_path import CriticalPath, PathEntry
from neuron_profile.analysis.traces.device_spans import Kind, load_device_spans
from neuron_profile.analysis.traces.stored_spans import distinct, load_tracks, read_spans
from neuron_tools.arrays import Ints
from neuron_tools.profile.reader import Profile

if TYPE_CHECKING:
    from neuron_profile.analysis.traces.path_kernel import Waits

Stretches = dict[tuple[str, str], list[int]]
"""Time and number of stretches by resource and operation."""

WAITING_CALLS = (
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy",
    "hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize", "hipMemcpy",
    "nrt_execute", "nrt_tensor_read",
)  # fmt: skip
LAUNCHING, BETWEEN_SPANS = "launch", "between device spans"
_NO_CALLS = frozenset({"Trace", "overhead", "ac2g"})
"""Categories of what stands on threads and is no call."""
_PROCESS = (
    "SELECT process_idx AS process FROM TraceSpan GROUP BY ALL ORDER BY max(end_ts) - min(start_ts) DESC, 1"
)
_TRACKS = "SELECT track_idx, name FROM TraceTrack WHERE process_idx = ?"


@dataclass(frozen=True)
class _Side:
    """Spans of the host or of the devices of one process, by track and start; `codes` name `texts`."""

    track: Ints
    start: Ints
    end: Ints
    correlation: Ints
    codes: Ints
    texts: Sequence[str]


def find_trace_path(profile: Profile, process: int | None = None) -> CriticalPath | None:
    """The path through an imported trace; None where it has no spans.

    Args:
        process: Whose; the one with the longest trace if None.
    """
    if process is None:
        processes = profile.query(_PROCESS).to_pylist()
        if not processes:
            return None
        process = int(processes[0]["process"])
    host, device = _host_side(profile, process), _device_side(profile, process)
    if not len(host.start) and not len(device.start):
        return None
    names = {row["track_idx"]: row["name"] for row in profile.query(_TRACKS, [process]).to_pylist()}
    begin = min(int(side.start.min()) for side in (host, device) if len(side.start))
    stretches = _walk(host, device, begin)
    totals = _on_device(device, stretches, names)
    _on_host(host, stretches, names, totals)
    entries = [PathEntry(*key, "", 0, float(time), count) for key, (time, count) in totals.items() if time]
    entries.sort(key=lambda entry: (-entry.path_ns, entry.resource, entry.operation))
    return CriticalPath(float((stretches[:, 3] - stretches[:, 2]).sum()), tuple(entries))


def _host_side(profile: Profile, process: int) -> _Side:
    """Calls of the threads, of equal starts the longest first."""
    tracks = load_tracks(profile)
    is_thread = tracks.is_host & tracks.is_thread & (tracks.process == process)
    table = read_spans(profile, lambda rows: is_thread[rows.place])
    table = table.chosen(~table.has_category(_NO_CALLS))
    rows = table.rows.chosen(np.lexsort((-table.rows.end_ns, table.rows.start_ns, table.rows.place)))
    track = tracks.number[rows.place]
    return _Side(track, rows.start_ns, rows.end_ns, rows.correlation, rows.name, table.names)


def _device_side(profile: Profile, process: int) -> _Side:
    spans = load_device_spans(profile)
    spans = spans.chosen((spans.process == process) & (spans.kind != int(Kind.OTHER)))
    return _Side(spans.track, spans.start_ns, spans.end_ns, spans.correlation, spans.name, spans.names)


def _walk(host: _Side, device: _Side, begin: int) -> Ints:
    """Stretches of the path: what, which, from, to."""
    from neuron_profile.analysis.traces.path_kernel import Device, walk

    threads = np.sort(distinct(host.track)[0])
    thread_of = np.searchsorted(threads, host.track)
    launch, launcher = _launches(host, device, thread_of)
    spans = Device(device.start, device.end, _before_on_stream(device), launch, launcher)
    ends = [int(side.end.max()) if len(side.end) else begin for side in (device, host)]
    main = int(np.argmax(np.bincount(thread_of))) if len(threads) else 0
    last_span, last_thread = -1, main
    if ends[0] >= ends[1] or not len(threads):
        last_span = int(np.argmax(device.end))
    else:
        last_thread = int(thread_of[np.argmax(host.end)])
    path = np.zeros((2 * len(device.start) + 4 * len(host.start) + 8, 4), np.int64)
    waits = _waits(host, device, thread_of, len(threads))
    count = walk(spans, waits, last_span, last_thread, max(ends), begin, main, path)
    return path[:count]


def _launches(host: _Side, device: _Side, thread_of: Ints) -> tuple[Ints, Ints]:
    """Start and thread of the host call that launched each device span; -1 = not known."""
    calls = np.flatnonzero(host.correlation >= 0)
    order = calls[np.argsort(host.correlation[calls], kind="stable")]
    launch, thread = np.full(len(device.start), -1, np.int64), np.full(len(device.start), -1, np.int64)
    if len(order):
        known = host.correlation[order]
        place = np.minimum(np.searchsorted(known, device.correlation), len(order) - 1)
        found = (device.correlation >= 0) & (known[place] == device.correlation)
        launch[found] = host.start[order[place[found]]]
        thread[found] = thread_of[order[place[found]]]
    return launch, thread


def _before_on_stream(device: _Side) -> Ints:
    before = np.arange(len(device.start), dtype=np.int64) - 1
    if len(before):
        before[0] = -1
        before[1:][device.track[1:] != device.track[:-1]] = -1
    return before


def _waits(host: _Side, device: _Side, thread_of: Ints, threads: int) -> Waits:
    """Calls that waited for the device: a device span ended while they ran."""
    from neuron_profile.analysis.traces import path_kernel

    waiting = np.array([text in WAITING_CALLS for text in host.texts], bool)
    calls = np.flatnonzero(waiting[host.codes]) if len(host.start) else np.zeros(0, np.int64)
    by_end = np.argsort(device.end, kind="stable")
    place = np.searchsorted(device.end[by_end], host.end[calls], side="right") - 1
    waited = place >= 0
    calls, place = calls[waited], place[waited]
    span = by_end[place]
    inside = device.end[span] > host.start[calls]
    calls, span = calls[inside], span[inside]
    order = np.lexsort((host.end[calls], thread_of[calls]))
    calls, span = calls[order], span[order]
    first = np.searchsorted(thread_of[calls], np.arange(threads + 2))
    return path_kernel.Waits(first, host.end[calls], span)


def _on_device(device: _Side, stretches: Ints, names: dict[int, str]) -> Stretches:
    """Stretches on devices, of gaps between spans and of launches, summed up."""
    from neuron_profile.analysis.traces.path_kernel import BETWEEN, LAUNCH, ON_DEVICE

    totals: Stretches = defaultdict(lambda: [0, 0])
    codes, texts = device.codes, device.texts
    for what in (ON_DEVICE, BETWEEN, LAUNCH):
        chosen = stretches[stretches[:, 0] == what]
        unique, place = distinct(device.track[chosen[:, 1]] * len(texts) + codes[chosen[:, 1]])
        time = np.bincount(place, weights=chosen[:, 3] - chosen[:, 2], minlength=len(unique))
        count = np.bincount(place, minlength=len(unique))
        for key, spent, times in zip(unique.tolist(), time.tolist(), count.tolist()):
            track, code = divmod(key, len(texts))
            resource = names.get(track, str(track)) if what == ON_DEVICE else ""
            entry = totals[resource or (LAUNCHING if what == LAUNCH else BETWEEN_SPANS), texts[code]]
            entry[0] += int(spent)
            entry[1] += times
    return totals


def _on_host(host: _Side, stretches: Ints, names: dict[int, str], totals: Stretches) -> None:
    """Add the stretches on host threads: each moment to the innermost span of its thread."""
    from neuron_profile.analysis.traces.path_kernel import ON_HOST, WAITING, innermost, spend

    codes, texts = host.codes, host.texts
    on_host = stretches[(stretches[:, 0] == ON_HOST) | (stretches[:, 0] == WAITING)]
    for number, track in enumerate(sorted(distinct(host.track)[0].tolist())):
        mine = on_host[on_host[:, 1] == number]
        if not len(mine):
            continue
        spans = np.flatnonzero(host.track == track)
        at, owner = np.zeros(2 * len(spans) + 1, np.int64), np.zeros(2 * len(spans) + 1, np.int64)
        count = innermost(host.start[spans], host.end[spans], at, owner)
        spent = np.zeros(len(spans), np.int64)
        nobody = spend(at[:count], owner[:count], mine[:, 2], mine[:, 3], spent)
        resource = names.get(track, str(track))
        by_name = np.bincount(codes[spans], weights=spent, minlength=len(texts))
        times = np.bincount(codes[spans][spent > 0], minlength=len(texts))
        for code in np.flatnonzero(by_name).tolist():
            entry = totals[resource, texts[code]]
            entry[0] += int(by_name[code])
            entry[1] += int(times[code])
        totals[resource, ""][0] += int(nobody)
        totals[resource, ""][1] += 1
