"""What the host launched and copied at a line, call by call, and what leaving some of it out gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
WHERE span.kind IN ('dispatch', 'copy') AND coalesce(own.source_file, span.source_file, '') <> ''
ORDER BY file, line, process, start_ns, end_ns
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


def calls_by_line(context: Context) -> dict[tuple[str, int], list[Call]]:
    """The calls of each line of the user's own, by file and line."""
    found: dict[tuple[str, int], list[Call]] = {}
    for row in context.profile.query(_CALLS).to_pylist():
        call = Call(row["process"], row["name"], row["kind"] == "copy", row["start_ns"], row["end_ns"])
        found.setdefault((row["file"], row["line"]), []).append(call)
    return found


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
