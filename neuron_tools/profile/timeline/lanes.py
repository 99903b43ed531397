"""Builds a lane: the spans of one track at one depth, in order of time, and windows over them.

A lane is written in blocks of spans and, over them, levels of windows of a power-of-two size. A level holds
one entry for each window in which a span starts: how many start, how long the longest is, how much time is
busy. The finest level has about one entry for eight spans; each further one has windows four times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.profile.timeline.blob import BlobWriter
from neuron_tools.profile.timeline.levels import (
    LONGEST_SHIFT,
    BlockSpans,
    Bounds,
    LevelsWriter,
    WindowCounter,
    windows_of,
)
from neuron_tools.profile.timeline.segment import Segment, joined

SPANS_PER_WINDOW = 8
BLOCK_SPANS = 1 << 14
FEWEST_SPANS = 8192  # lanes of fewer have no windows: all their spans are looked at
SAMPLE_SPANS = 1 << 15
SAMPLES = 8


class LaneWriter:
    """Takes the spans of one lane, segment after segment."""

    def __init__(self, blob: BlobWriter) -> None:
        self._blob = blob
        self._held: list[Segment] = []
        self._blocks: list[dict[str, Any]] = []
        self.spans = 0
        self.end_ns = 0
        self._busy_ns = self._longest_ns = self._last_start_ns = 0
        self._greatest_name = self._greatest_row = 0

    def append(self, spans: Segment) -> None:
        """Add spans; they start after all that were added before have ended."""
        if not len(spans):
            return
        self._held.append(spans.apart())
        self.spans += len(spans)
        self._last_start_ns = int(spans.start_ns[-1])
        self.end_ns = max(self.end_ns, self._last_start_ns + int(spans.duration_ns[-1]))
        self._busy_ns += int(spans.duration_ns.sum())
        self._longest_ns = max(self._longest_ns, int(spans.duration_ns.max()))
        self._greatest_name = max(self._greatest_name, int(spans.name.max()))
        self._greatest_row = max(self._greatest_row, int(spans.row.max()))
        if sum(map(len, self._held)) >= BLOCK_SPANS:
            self._write_block()

    def _write_block(self, *, late: bool = False) -> None:
        spans, self._held = joined(self._held), []
        base, first_row = int(spans.start_ns[0]), int(spans.row.min())
        run = _run_places(spans.row)
        if len(run) * 2 > len(spans):  # hardly any run of rows: each span tells its own
            run = np.arange(len(spans))
        self._blocks.append(
            {
                "spans": len(spans),
                "base": base,
                "start": self._blob.append_fitting(spans.start_ns - base, late=late),
                "duration": self._blob.append_fitting(spans.duration_ns, late=late),
                "name": self._blob.append_fitting(spans.name, late=late),
                "run": self._blob.append_fitting(run, late=late) if len(run) < len(spans) else None,
                "first_row": first_row,
                "row": self._blob.append_fitting(spans.row[run] - first_row, late=late),
            }
        )

    def finish(self) -> dict[str, Any]:
        """Write the windows; what the index says of the lane."""
        if self._held:  # a lane without windows is looked at whole whenever all of the profile is
            self._write_block(late=self.spans < FEWEST_SPANS)
        levels = self._write_levels() if self.spans >= FEWEST_SPANS else []
        start = self._blocks[0]["base"] if self._blocks else 0
        return {
            "spans": self.spans, "start_ns": start, "end_ns": self.end_ns, "busy_ns": self._busy_ns,
            "blocks": self._blocks, "levels": levels,
        }  # fmt: skip

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

    def _write_levels(self) -> list[dict[str, Any]]:
        shift = self._finest_shift()
        counter = WindowCounter(shift)
        for block in self._blocks:
            counter.add(self._starts(block))
        ends = self._blocks[0]["base"], self._last_start_ns
        levels = LevelsWriter(self._blob, shift, counter.levels(), *ends, self._bounds())
        for block in self._blocks:
            levels.add(self._spans(block))
        return levels.finish()

    def _bounds(self) -> Bounds:
        return Bounds(self.spans, self._busy_ns, self._longest_ns, self._greatest_name, self._greatest_row)

    def _starts(self, block: dict[str, Any]) -> Ints:
        starts: Ints = self._blob.read(block["start"]).astype(np.int64)
        starts += block["base"]
        return starts

    def _spans(self, block: dict[str, Any]) -> BlockSpans:
        runs = block["run"]
        return BlockSpans(
            self._starts(block),
            self._blob.read(block["duration"]).astype(np.int64),
            self._blob.read(block["name"]).astype(np.int32),
            np.arange(block["spans"]) if runs is None else self._blob.read(runs).astype(np.int64),
            self._blob.read(block["row"]).astype(np.int64) + block["first_row"],
        )


def _run_places(row: Ints) -> Ints:
    """Where runs of consecutive rows begin."""
    return np.concatenate([[0], np.flatnonzero(row[1:] - row[:-1] != 1) + 1])
