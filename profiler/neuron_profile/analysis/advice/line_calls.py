"""What the host launched and copied at a line, call by call, and what leaving some of it out gives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.function_sources import function_lines
from neuron_profile.analysis.loop_sources import LoopLine, copying_lines, loop_lines
from neuron_profile.analysis.remembered import remembered
from neuron_profile.analysis.source_frames import SourceFrame, load_frames, stack
from neuron_profile.analysis.whatif.replay import Spans
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

MINIMUM_TIMES = 3
_CALLS = """
SELECT coalesce(own.source_file, span.source_file, '') AS file,
    coalesce(own.source_line, span.source_line, 0) AS line,
    coalesce(span.process_idx, 0) AS process, span.kind AS kind, span.name AS name, span.start_ts AS start_ns,
    span.end_ts AS end_ns, coalesce(span.stack_frame_ids, '') AS stack, coalesce(span.layer, '') AS layer
FROM HostSpan span LEFT JOIN Frontier own ON own.stack_frame_id = span.stack_frame_ids
WHERE span.kind IN ('dispatch', 'copy')
ORDER BY process, start_ns, end_ns
"""


@frozen
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
    """A call and the user's own line that made it; the file is "" where none is known.

    Attributes:
        stack: Id of the innermost frame of its stack, "" where none is known.
        layer: Path of the module that it was made in, "" outside of modules.
    """

    file: str
    line: int
    call: Call
    stack: str = ""
    layer: str = ""


@frozen
class LineCalls:
    """The calls of one line that ran several times, in a loop or a function, as the profile keeps its text.

    Attributes:
        times: How often the line ran.
        first_runs: Which of its runs were the first since the loop began, which may be many times; of a
            function's line, the first in each module.
    """

    file: str
    source: LoopLine
    calls: Sequence[Call]
    times: int
    first_runs: frozenset[int]

    def spans(self, keep_first: bool) -> Spans:
        """The calls of all runs of the line, or of all but the first since the loop began."""
        size = len(self.calls) // self.times
        kept = self.first_runs if keep_first else ()
        return spans_of([call for number, call in enumerate(self.calls) if number // size not in kept])


def spans_of(calls: Sequence[Call]) -> Spans:
    """(calls, 3) process, start and end of each."""
    rows = [(call.process, call.start_ns, call.end_ns) for call in calls]
    return np.array(rows, np.int64).reshape(-1, 3)


def calls_in_order(context: Context) -> Sequence[PlacedCall]:
    """All calls, process by process, as the host made them."""
    return _calls(context.profile)


@remembered
def _calls(profile: Profile) -> Sequence[PlacedCall]:
    return tuple(
        PlacedCall(
            row["file"], row["line"],
            Call(row["process"], row["name"], row["kind"] == "copy", row["start_ns"], row["end_ns"]),
            row["stack"], row["layer"],
        )
        for row in profile.query(_CALLS).to_pylist()
    )  # fmt: skip


def calls_by_line(context: Context) -> dict[tuple[str, int], list[Call]]:
    """The calls of each line of the user's own, by file and line."""
    calls = calls_in_order(context)
    return {place: [calls[each].call for each in found] for place, found in _positions(calls).items()}


def _positions(calls: Sequence[PlacedCall]) -> dict[tuple[str, int], list[int]]:
    """Where the calls of each line of the user's own stand, by file and line."""
    found: dict[tuple[str, int], list[int]] = {}
    for position, placed in enumerate(calls):
        if placed.file:
            found.setdefault((placed.file, placed.line), []).append(position)
    return dict(sorted(found.items()))


def runs(context: Context, owner: Callable[[PlacedCall], Hashable | None]) -> Iterator[list[PlacedCall]]:
    """Calls of one process that follow each other and have one owner; those without an owner are left out."""
    for key, group in groupby(calls_in_order(context), lambda placed: (placed.call.process, owner(placed))):
        if key[1] is not None:
            yield list(group)


def calls_in_loops(context: Context) -> Iterator[LineCalls]:
    """The lines of loops that ran several times, with their calls; none of a profile without texts."""
    yield from _in_loops(context, loop_lines, _positions(calls_in_order(context)))


def copies_in_loops(context: Context) -> Iterator[LineCalls]:
    """The lines of loops that copied to the device inside an expression, with these copies alone."""
    calls = calls_in_order(context)
    copies = (
        (place, [each for each in found if calls[each].call.is_copy])
        for place, found in _positions(calls).items()
    )
    yield from _in_loops(context, copying_lines, {place: found for place, found in copies if found})


def _in_loops(
    context: Context,
    sources_of: Callable[[Sequence[str]], dict[int, LoopLine]],
    by_place: Mapping[tuple[str, int], Sequence[int]],
) -> Iterator[LineCalls]:
    """The calls of lines that ran several times.

    Args:
        sources_of: What the text of a file says about its lines.
        by_place: Positions of the calls of each line.
    """
    calls, frames = calls_in_order(context), load_frames(context.profile)
    sources = {file: sources_of(context.texts.lines(file)) for file in {file for file, _ in by_place}}
    for (file, line), positions in by_place.items():
        source, own = sources[file].get(line), [calls[each].call for each in positions]
        if source is None:
            continue
        times = repetitions([call.name for call in own]) // source.moved
        if times >= MINIMUM_TIMES:
            first = _first_runs(
                calls, positions[:: len(own) // times], _calls_outside(calls, frames, file, source)
            )
            yield LineCalls(file, source, own, times, frozenset(first))


def calls_in_functions(context: Context) -> Iterator[LineCalls]:
    """The lines of functions that gave the same several times, with their calls."""
    calls = calls_in_order(context)
    by_place = _positions(calls)
    sources = {file: function_lines(context.texts.lines(file)) for file in {file for file, _ in by_place}}
    for (file, line), positions in by_place.items():
        source, own = sources[file].get(line), [calls[each].call for each in positions]
        times = repetitions([call.name for call in own]) if source is not None else 0
        if source is not None and times >= MINIMUM_TIMES:
            layers = [calls[each].layer for each in positions[:: len(own) // times]]
            first = frozenset(layers.index(layer) for layer in layers)
            yield LineCalls(file, source, own, times, first)


def _calls_outside(
    calls: Sequence[PlacedCall], frames: Mapping[str, SourceFrame], file: str, source: LoopLine
) -> npt.NDArray[np.int64]:
    """(calls + 1,) how many calls before each were made outside of a line's loop; of others nobody knows."""
    loop = range(source.loop_line, source.loop_end + 1)
    is_outside = {
        leaf: bool(leaf)
        and not any(frame.file == file and frame.line in loop for frame in stack(frames, leaf))
        for leaf in {placed.stack for placed in calls}
    }
    return np.cumsum([0, *(is_outside[placed.stack] for placed in calls)])


def _first_runs(
    calls: Sequence[PlacedCall], starts: Sequence[int], outside: npt.NDArray[np.int64]
) -> Iterator[int]:
    """The runs of a line before which its loop began: the first, and those behind calls outside of it."""
    for number, start in enumerate(starts):
        before = starts[number - 1] if number else start
        is_next = (
            calls[before].call.process == calls[start].call.process and outside[start] == outside[before]
        )
        if not number or not is_next:
            yield number


def repetitions(names: Sequence[str]) -> int:
    """How often the shortest sequence that makes up all names stands in them. O(n * divisors of n)."""
    count = len(names)
    for length in range(1, count // 2 + 1):
        if count % length == 0 and list(names[length:]) == list(names[:-length]):
            return count // length
    return 1
