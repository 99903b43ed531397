"""When the main thread called the device, and from which line: a sample tells nothing of the time before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints, Table
from neuron_tools.frozen import frozen
from neuron_tools.records.capture_log import RecordKind
from neuron_tools.records.program import Frame

STRETCH_NS = 1_000_000
"""Only the last call that ends within such a stretch is kept: memory grows with time, not with calls."""
_MAIN_THREAD = 0
_CALLS = tuple(
    int(kind)
    for kind in (
        RecordKind.OPERATION,
        RecordKind.FUSED_OPERATION,
        RecordKind.GRAPH,
        RecordKind.COPY_TO_DEVICE,
        RecordKind.COPY_TO_HOST,
        RecordKind.SYNCHRONIZE,
        RecordKind.COLLECTIVE,
    )
)


class MainCalls:
    """Ends of the main thread's calls, in order, on the capture's clock."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    def add(self, records: Table) -> None:
        """Take the calls among records of a log, which come in the order in which they began."""
        calls = records[np.isin(records["kind"], _CALLS) & (records["thread"] == _MAIN_THREAD)]
        calls = calls[np.argsort(calls["host_end_ns"], kind="stable")]
        stretch = calls["host_end_ns"] // STRETCH_NS
        last = np.flatnonzero(np.diff(stretch, append=np.iinfo(np.int64).max))
        for place in last.tolist():
            found = int(calls["host_end_ns"][place]), int(calls["stack"][place])
            number = int(stretch[place])
            self._last[number] = max(found, self._last.get(number, found))

    def before(self, times: Ints) -> tuple[Ints, npt.NDArray[np.int64]]:
        """The last call that has ended by each time: its end, and the number of its stack; -1 for none."""
        ends, stacks = (np.array([-1, *column], np.int64) for column in self._columns())
        place = np.searchsorted(ends, times, side="right") - 1
        return ends[place], stacks[place]

    def _columns(self) -> tuple[list[int], list[int]]:
        kept = sorted(self._last.values())
        return [end for end, _ in kept], [stack for _, stack in kept]


@frozen
class CallPlaces:
    """The main thread's calls with the stacks that they came from, innermost frame first."""

    calls: MainCalls
    stacks: Mapping[int, Sequence[Frame]]

    def from_elsewhere(self, times: Ints, places: Sequence[Set[tuple[str, int]]]) -> Ints:
        """End of the last call by each time; -1 where it came from one of that time's places (file, line)."""
        ends, numbers = self.calls.before(times)
        innermost = [self.stacks.get(number, ())[:1] for number in numbers.tolist()]
        is_here = [
            any((frame.file, frame.line) in here for frame in frames)
            for frames, here in zip(innermost, places, strict=True)
        ]
        return np.where(np.array(is_here, bool), -1, ends)
