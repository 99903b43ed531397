"""Builds a lane: the spans of one track at one depth, in order of time, and windows over them.

A lane is written in blocks of spans and, over them, levels of windows of a power-of-two size. A level holds
one entry for each window in which a span starts: how many start, how long the longest is, how much time is
busy. The finest level has about one entry for eight spans; each further one has windows four times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from neuron_tools.profile.timeline.blob import BlobWriter
from neuron_tools.profile.timeline.scan import Ints
from neuron_tools.profile.timeline.segment import Segment, joined

SPANS_PER_WINDOW = 8
SHIFT_STEP = 2
BLOCK_SPANS = 1 << 14
FEWEST_WINDOWS = 1024
FEWEST_SPANS = 8192  # lanes of fewer have no windows: all their spans are looked at
SAMPLE_SPANS = 1 << 15
SAMPLES = 8
LONGEST_SHIFT = 44  # a window of 4.9 hours


@dataclass(frozen=True, slots=True)
class Entries:
    """Windows of one level, in order; every column int64, shape (windows,).

    Attributes:
        window: Number of the window: its start over its size.
        first: First span that starts in it, counted in the lane.
        busy_ns: Duration of all spans before that one.
        until_ns: When the last span that starts in it, or before, ends.
        longest_start_ns, longest_duration_ns, longest_name, longest_row: Of the longest span that starts
            in it; its row counts in the table.
    """

    window: Ints
    first: Ints
    busy_ns: Ints
    until_ns: Ints
    longest_start_ns: Ints
    longest_duration_ns: Ints
    longest_name: Ints
    longest_row: Ints

    def __len__(self) -> int:
        return len(self.window)


class LaneWriter:
    """Takes the spans of one lane, segment after segment."""

    def __init__(self, blob: BlobWriter) -> None:
        self._blob = blob
        self._held: list[Segment] = []
        self._blocks: list[dict[str, Any]] = []
        self.spans = 0
        self.end_ns = 0
        self._busy_ns = 0

    def append(self, spans: Segment) -> None:
        """Add spans; they start after all that were added before have ended."""
        if not len(spans):
            return
        self._held.append(spans)
        self.spans += len(spans)
        self.end_ns = max(self.end_ns, int(spans.start_ns[-1] + spans.duration_ns[-1]))
        self._busy_ns += int(spans.duration_ns.sum())
        if sum(map(len, self._held)) >= BLOCK_SPANS:
            self._write_block()

    def _write_block(self) -> None:
        spans, self._held = joined(self._held), []
        base, first_row = int(spans.start_ns[0]), int(spans.row.min())
        run = np.flatnonzero(np.diff(spans.row, prepend=spans.row[0] - 2) != 1)
        if len(run) * 2 > len(spans):  # hardly any run of rows: each span tells its own
            run = np.arange(len(spans))
        self._blocks.append(
            {
                "spans": len(spans),
                "base": base,
                "start": self._blob.append_fitting(spans.start_ns - base),
                "duration": self._blob.append_fitting(spans.duration_ns),
                "name": self._blob.append_fitting(spans.name),
                "run": self._blob.append_fitting(run) if len(run) < len(spans) else None,
                "first_row": first_row,
                "row": self._blob.append_fitting(spans.row[run] - first_row),
            }
        )

    def finish(self) -> dict[str, Any]:
        """Write the windows; what the index says of the lane."""
        if self._held:
            self._write_block()
        levels: list[dict[str, Any]] = []
        if self.spans >= FEWEST_SPANS:
            shift = self._finest_shift()
            entries = self._finest(shift)
            levels.append(self._write(entries, shift))
            while len(entries) > FEWEST_WINDOWS and shift + SHIFT_STEP <= LONGEST_SHIFT:
                shift += SHIFT_STEP
                entries = coarser(entries)
                levels.append(self._write(entries, shift))
        start = self._blocks[0]["base"] if self._blocks else 0
        return {
            "spans": self.spans, "start_ns": start, "end_ns": self.end_ns, "busy_ns": self._busy_ns,
            "blocks": self._blocks, "levels": levels,
        }  # fmt: skip

    def _write(self, entries: Entries, shift: int) -> dict[str, Any]:
        begin = entries.window << shift
        base = int(entries.window[0])
        columns = {
            "window": entries.window - base,
            "first": entries.first,
            "busy_ns": entries.busy_ns,
            "until_ns": entries.until_ns - begin,
            "longest_start_ns": entries.longest_start_ns - begin,
            "longest_duration_ns": entries.longest_duration_ns,
            "longest_name": entries.longest_name,
            "longest_row": entries.longest_row,
        }
        stored = {name: self._blob.append_fitting(values) for name, values in columns.items()}
        return {"shift": shift, "base": base, "entries": len(entries), **stored}

    def _finest_shift(self) -> int:
        """The window size at which samples of the lane have about `SPANS_PER_WINDOW` spans in a window."""
        samples = [self._sample(block) for block in self._blocks[:: -(-len(self._blocks) // SAMPLES)]]
        wanted = sum(map(len, samples)) // SPANS_PER_WINDOW
        low, high = 0, LONGEST_SHIFT
        while low < high:
            middle = (low + high) // 2
            if sum(windows_of(sample, middle) for sample in samples) <= wanted:
                high = middle
            else:
                low = middle + 1
        return low

    def _sample(self, block: dict[str, Any]) -> Ints:
        offset, kind, count = block["start"]
        skipped = max(count - SAMPLE_SPANS, 0) // 2
        place = offset + skipped * np.dtype(kind).itemsize
        sample: Ints = self._blob.read([place, kind, min(count, SAMPLE_SPANS)]).astype(np.int64)
        return sample

    def _rows(self, block: dict[str, Any]) -> Ints:
        rows: Ints = self._blob.read(block["row"]).astype(np.int64) + block["first_row"]
        if block["run"] is None:
            return rows
        return _rows_of(self._blob.read(block["run"]).astype(np.int64), rows, block["spans"])

    def _finest(self, shift: int) -> Entries:
        parts: list[Entries] = []
        first, busy = 0, 0
        for block in self._blocks:
            start = self._blob.read(block["start"]).astype(np.int64) + block["base"]
            duration = self._blob.read(block["duration"]).astype(np.int64)
            labels = self._blob.read(block["name"]), self._rows(block)
            entries = _entries(start, duration, labels, shift, first, busy)
            parts.append(entries)
            first, busy = first + len(start), busy + int(duration.sum())
        entries = _all_of(parts)
        return merged(entries, entries.window) if len(parts) > 1 else entries


def _rows_of(runs: Ints, rows: Ints, spans: int) -> Ints:
    """Rows of all spans of a block from where its runs of consecutive rows begin."""
    lengths = np.diff(np.append(runs, spans))
    return np.repeat(rows - runs, lengths) + np.arange(spans, dtype=np.int64)


def windows_of(start_ns: Ints, shift: int) -> int:
    """In how many windows of 2**shift ns spans start."""
    return int(np.count_nonzero(np.diff(start_ns >> shift))) + 1


def _entries(
    start: Ints, duration: Ints, labels: tuple[Any, Ints], shift: int, first: int, busy: int
) -> Entries:
    """The windows of one block whose first span is number `first` of the lane, after `busy` ns of spans."""
    window = start >> shift
    opening = np.flatnonzero(np.diff(window, prepend=window[0] - 1))
    total = np.cumsum(duration)
    closing = np.append(opening[1:], len(start)) - 1
    longest = _longest(duration, opening)
    name, row = labels
    return Entries(
        window[opening],
        first + opening,
        busy + total[opening] - duration[opening],
        np.maximum.accumulate((start + duration)[closing]),
        start[longest],
        duration[longest],
        name[longest].astype(np.int64),
        row[longest],
    )


def _longest(duration: Ints, opening: Ints) -> Ints:
    """Place of the longest span of each window; windows begin at `opening`."""
    bits = max(len(duration) - 1, 1).bit_length()
    place = np.arange(len(duration), dtype=np.int64)
    key = (np.minimum(duration, (1 << 62 - bits) - 1) << bits) | place
    longest: Ints = np.maximum.reduceat(key, opening) & ((1 << bits) - 1)
    return longest


def coarser(entries: Entries) -> Entries:
    """The same with windows 2**SHIFT_STEP times as long."""
    return merged(entries, entries.window >> SHIFT_STEP)


def merged(entries: Entries, window: Ints) -> Entries:
    """One entry of each run of entries whose new window numbers are equal."""
    opening = np.flatnonzero(np.diff(window, prepend=window[0] - 1))
    closing = np.append(opening[1:], len(window)) - 1
    longest = _longest(entries.longest_duration_ns, opening)
    return Entries(
        window[opening],
        entries.first[opening],
        entries.busy_ns[opening],
        entries.until_ns[closing],
        entries.longest_start_ns[longest],
        entries.longest_duration_ns[longest],
        entries.longest_name[longest],
        entries.longest_row[longest],
    )


def _all_of(parts: list[Entries]) -> Entries:
    columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Entries)]
    return Entries(*columns)
