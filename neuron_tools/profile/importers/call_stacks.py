"""Calls of one thread as nested spans: from stacks that were sampled, or from calls that open and close."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.importers.lanes import Lanes
from neuron_tools.profile.importers.recording import LANE

CATEGORY = "function"


@frozen
class Frame:
    """A function, or a line of one.

    Attributes:
        name: The function's name.
        file: Its source file; None if not known.
        line: Line of the call that runs, or of the function, counted from 1; None if not known.
    """

    name: str
    file: str | None = None
    line: int | None = None


@dataclass(slots=True)
class CallStacks:
    """The calls of one thread, in order of time; frames are numbers.

    Attributes:
        mismatched: Ends of calls that were not the innermost one; they close what is above them too.
    """

    mismatched: int = 0
    _open: list[tuple[int, int]] = field(default_factory=list)
    _frames: array[int] = field(default_factory=lambda: array("q"))
    _starts: array[int] = field(default_factory=lambda: array("q"))
    _ends: array[int] = field(default_factory=lambda: array("q"))

    def sample(self, stack: Sequence[int], time_ns: int) -> None:
        """A stack, outermost frame first, from a time on: calls that it shares with the one before go on."""
        shared = 0
        for (frame, _), own in zip(self._open, stack):
            if frame != own:
                break
            shared += 1
        self._close_to(shared, time_ns)
        self._open.extend((frame, time_ns) for frame in stack[shared:])

    def open(self, frame: int, time_ns: int) -> None:
        """A call begins inside those that are open."""
        self._open.append((frame, time_ns))

    def close(self, frame: int, time_ns: int) -> None:
        """The innermost open call of a function ends; without one nothing does."""
        for depth in reversed(range(len(self._open))):
            if self._open[depth][0] == frame:
                self.mismatched += depth + 1 < len(self._open)
                self._close_to(depth, time_ns)
                return
        self.mismatched += 1

    def finish(self, time_ns: int) -> tuple[Ints, Ints, Ints]:
        """Close all.

        Returns:
            Frame, start and end of each call, int64 ns, callers before what they call.
        """
        self._close_to(0, time_ns)
        frames, starts, ends = (np.array(each, np.int64) for each in (self._frames, self._starts, self._ends))
        # Calls are kept as they end, so that of those with equal times the caller comes last.
        order = np.lexsort((-np.arange(len(ends)), -ends, starts))
        return frames[order], starts[order], ends[order]

    def _close_to(self, depth: int, time_ns: int) -> None:
        while len(self._open) > depth:
            frame, start = self._open.pop()
            self._frames.append(frame)
            self._starts.append(start)
            self._ends.append(max(start, time_ns))


def calls_of_samples(stacks: Sequence[Sequence[int]], edges_ns: Ints) -> CallStacks:
    """Calls of stacks that stand one after the other.

    Args:
        stacks: Frames, outermost first.
        edges_ns: int64, shape (stacks + 1,): where each begins, and where the last ends.
    """
    calls = CallStacks()
    edges = edges_ns.tolist()
    for stack, (start, end) in zip(stacks, pairwise(edges)):
        if end > start:
            calls.sample(stack, start)
    return calls


def stage_calls(lanes: Lanes, lane: int, frames: Sequence[Frame], calls: tuple[Ints, Ints, Ints]) -> None:
    """Stage calls on the lane of a thread."""
    numbers, starts, ends = calls
    chosen = pa.array(numbers)
    lanes.add_spans(
        {
            LANE: pa.array(np.full(len(numbers), lane, np.int32)),
            "start_ts": pa.array(starts),
            "end_ts": pa.array(ends),
            "name": pa.array([frame.name for frame in frames], pa.string()).take(chosen).dictionary_encode(),
            "category": pa.repeat(CATEGORY, len(numbers)).dictionary_encode(),
            "source_file": pa.array([frame.file for frame in frames], pa.string())
            .take(chosen)
            .dictionary_encode(),
            "source_line": pa.array([frame.line for frame in frames], pa.int32()).take(chosen),
        }
    )
