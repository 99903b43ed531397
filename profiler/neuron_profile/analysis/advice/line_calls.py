"""What the host launched and copied at a line, call by call, and what leaving some of it out gives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.loop_sources import LoopLine, loop_lines
from neuron_profile.analysis.whatif.replay import Spans

MINIMUM_TIMES = 3
_CALLS = """
SELECT coalesce(own.source_file, span.source_file, '') AS file,
    coalesce(own.source_line, span.source_line, 0) AS line,
    coalesce(span.process_idx, 0) AS process, span.kind AS kind, span.name AS name, span.start_ts AS start_ns,
    span.end_ts AS end_ns
FROM HostSpan span LEFT JOIN Frontier own ON own.stack_frame_id = span.stack_frame_ids
WHERE span.kind IN ('dispatch', 'copy')
ORDER BY process, start_ns, end_ns
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One operation that the host launched, or one copy.

    Attributes:
        name: "aten::mm".
        is_copy: Whether it is a copy between host and device.
    """

    process: int
    name: str
    is_copy: bool
    start_ns: int
    end_ns: int


class PlacedCall(NamedTuple):
    """A call and the user's own line that made it; the file is "" where none is known."""

    file: str
    line: int
    call: Call


@dataclass(frozen=True, slots=True)
class LineCalls:
    """The calls of one line in a loop, as the profile keeps its text.

    Attributes:
        times: How often the line ran.
    """

    file: str
    source: LoopLine
    calls: Sequence[Call]
    times: int

    def spans(self, keep: int) -> Spans:
        """The calls of all runs of the line but the first `keep`."""
        kept = keep * len(self.calls) // self.times
        return spans_of(self.calls[kept:])


def spans_of(calls: Sequence[Call]) -> Spans:
    """(calls, 3) process, start and end of each."""
    rows = [(call.process, call.start_ns, call.end_ns) for call in calls]
    return np.array(rows, np.int64).reshape(-1, 3)


def calls_in_order(context: Context) -> list[PlacedCall]:
    """All calls, process by process, as the host made them."""
    return [
        PlacedCall(
            row["file"], row["line"],
            Call(row["process"], row["name"], row["kind"] == "copy", row["start_ns"], row["end_ns"]),
        )
        for row in context.profile.query(_CALLS).to_pylist()
    ]  # fmt: skip


def calls_by_line(context: Context) -> dict[tuple[str, int], list[Call]]:
    """The calls of each line of the user's own, by file and line."""
    found: dict[tuple[str, int], list[Call]] = {}
    for placed in calls_in_order(context):
        if placed.file:
            found.setdefault((placed.file, placed.line), []).append(placed.call)
    return dict(sorted(found.items()))


def runs(context: Context, owner: Callable[[PlacedCall], Hashable | None]) -> Iterator[list[PlacedCall]]:
    """Calls of one process that follow each other and have one owner; those without an owner are left out."""
    for key, group in groupby(calls_in_order(context), lambda placed: (placed.call.process, owner(placed))):
        if key[1] is not None:
            yield list(group)


def calls_in_loops(context: Context) -> Iterator[LineCalls]:
    """The lines of loops that ran several times, with their calls; none of a profile without texts."""
    by_place = calls_by_line(context)
    sources = {file: loop_lines(context.texts.lines(file)) for file in {file for file, _ in by_place}}
    for (file, line), calls in sorted(by_place.items()):
        source, times = sources[file].get(line), repetitions([call.name for call in calls])
        if source is not None and times >= MINIMUM_TIMES:
            yield LineCalls(file, source, calls, times)


def repetitions(names: Sequence[str]) -> int:
    """How often the shortest sequence that makes up all names stands in them. O(n * divisors of n)."""
    count = len(names)
    for length in range(1, count // 2 + 1):
        if count % length == 0 and list(names[length:]) == list(names[:-length]):
            return count // length
    return 1
