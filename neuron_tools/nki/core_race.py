"""Data that two cores of one launch share in HBM: refused where no barrier keeps a write from a read.

An argument has values before and after the write. Who has them runs the cores once more, the other one first:
where all results stay the same to the bit, as where a mask leaves out what was read, the user is only warned.
Of two cores that write the same place the user is warned: what stays is decided by which comes last, which
does not matter where both write the same values, as many kernels do on purpose.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from neuron_tools.frozen import frozen
from neuron_tools.nki.errors import ArgumentRaceError, RaceError
from neuron_tools.nki.isa.dma import IN_PLACE
from neuron_tools.nki.tracer import Tracer

Ints = npt.NDArray[np.int64]
_FIRST_OPERAND = 3
"""Column of a row from which on its operands' regions lie."""
_WRITTEN, _READ = range(2), range(2, 6)
"""Operands that are written and read."""

IDLE = (
    "the results of this call are the same whichever core goes first, as where a mask leaves out what is read"
)
UNDECIDED = "only a call on values can tell whether results depend on it"


class RaceWarning(UserWarning):
    """Two cores write the same place, or one reads what the other writes and no result is known to differ."""


@frozen
class SharedBuffer:
    """One memory and its number in the trace of each core.

    Attributes:
        name: What to call it.
        numbers: Its buffer's number by core.
        is_argument: Whether it has values before the kernel runs.
    """

    name: str
    numbers: tuple[int, ...]
    is_argument: bool = False


@frozen
class _Accesses:
    """Transfers of one core to or from one memory: row, meetings before it, first and last line, bytes."""

    row: Ints
    epoch: Ints
    box: Ints

    def reaches(self, other: _Accesses) -> bool:
        """Whether the boxes around all accesses of both share a byte; cores that divide rows stay apart."""
        if not len(self.row) or not len(other.row):
            return False
        one, two = self.box, other.box
        lines = one[:, 0].min() < two[:, 1].max() and two[:, 0].min() < one[:, 1].max()
        return bool(lines and one[:, 2].min() < two[:, 3].max() and two[:, 2].min() < one[:, 3].max())

    def within(self, other: _Accesses) -> _Accesses:
        """Those in reach of another core's: in the box around all that it accesses between two meetings."""
        epochs, group = np.unique(other.epoch, return_inverse=True)
        around = np.column_stack([_extreme(np.minimum, other.box[:, 0], group, len(epochs)),
                                  _extreme(np.maximum, other.box[:, 1], group, len(epochs)),
                                  _extreme(np.minimum, other.box[:, 2], group, len(epochs)),
                                  _extreme(np.maximum, other.box[:, 3], group, len(epochs))])  # fmt: skip
        at = np.minimum(np.searchsorted(epochs, self.epoch), len(epochs) - 1)
        near = (epochs[at] == self.epoch) & _overlap(self.box, around[at])
        return _Accesses(self.row[near], self.epoch[near], self.box[near])

    def distinct(self) -> list[int]:
        """One of each box and time, in order."""
        _, first = np.unique(np.column_stack([self.epoch, self.box]), axis=0, return_index=True)
        return [int(at) for at in np.sort(first)]

    def overlapping(self, epoch: int, box: Ints) -> npt.NDArray[np.bool_]:
        """Which of them touch a box between the same meetings."""
        return np.asarray(_overlap(self.box, box[None]) & (self.epoch == epoch))


def _overlap(one: Ints, other: Ints) -> npt.NDArray[np.bool_]:
    """Whether boxes share a byte, row by row."""
    lines = (one[:, 0] < other[:, 1]) & (other[:, 0] < one[:, 1])
    return np.asarray(lines & (one[:, 2] < other[:, 3]) & (other[:, 2] < one[:, 3]))


def _extreme(which: np.ufunc, values: Ints, group: Ints, groups: int) -> Ints:
    """The least or greatest value of each group."""
    found = np.zeros(groups, np.int64)
    found[group] = values  # any of the group to begin with
    which.at(found, group, values)
    return found


@frozen
class _Transfers:
    """Accesses of one core's DMAs: the buffer of each, its place among the operands, and itself."""

    buffer: Ints
    operand: Ints
    access: _Accesses

    def accesses(self, buffer: int, operands: range) -> _Accesses:
        """Those of some operands to one buffer, in order."""
        chosen = np.flatnonzero(
            (self.buffer == buffer) & (self.operand >= operands.start) & (self.operand < operands.stop)
        )
        return _Accesses(self.access.row[chosen], self.access.epoch[chosen], self.access.box[chosen])


def check_cores(traces: Sequence[Tracer], buffers: Sequence[SharedBuffer]) -> None:
    """Refuse reads of what another core writes between the same two meetings, and warn of its writes.

    Args:
        traces: The trace of each core; `shared["meetings"]` holds the row before which each meeting was.
        buffers: Memories that more than one core knows, arguments last.

    Raises:
        RaceError: Names the memory, both lines and what to do; an `ArgumentRaceError` where only arguments
            are read so.

    Warns:
        RaceWarning: Two cores write the same place.
    """
    meeting = _meeting_buffers(traces, buffers)
    if not meeting:
        return
    tables = [trace.row_table() for trace in traces]
    transfers = [_transfers(trace, rows) for trace, rows in zip(traces, tables)]
    for buffer in meeting:
        numbered = list(zip(transfers, buffer.numbers))
        writes = [moved.accesses(number, _WRITTEN) for moved, number in numbered]
        reads = [moved.accesses(number, _READ) for moved, number in numbered]
        _compare_writes(traces, tables, buffer.name, writes)
        for reader, read in enumerate(reads):
            for writer, written in enumerate(writes):
                if reader != writer and read.reaches(written):
                    _compare(traces, tables, buffer, (reader, writer), read, written, writes[reader])


def warn_of_race(error: ArgumentRaceError, why: str) -> None:
    """Warn of a read of an argument that races with a write, where it is not refused.

    Args:
        error: Why the read would be refused.
        why: Why it is not: `IDLE` or `UNDECIDED`.

    Warns:
        RaceWarning: Always.
    """
    warnings.warn(f"{error} ({why})", RaceWarning, stacklevel=2)


class _Span:
    """The box around all that a core writes to a memory, or reads from it: lines, then bytes of each."""

    __slots__ = ("bytes", "lines")

    def __init__(self) -> None:
        self.lines = self.bytes = (sys.maxsize, -1)

    def add(self, first: int, last: int, low: int, high: int) -> None:
        """Take in one more box."""
        self.lines = min(self.lines[0], first), max(self.lines[1], last)
        self.bytes = min(self.bytes[0], low), max(self.bytes[1], high)

    def meets(self, other: _Span) -> bool:
        """Whether both share a byte."""
        lines = self.lines[0] < other.lines[1] and other.lines[0] < self.lines[1]
        return lines and self.bytes[0] < other.bytes[1] and other.bytes[0] < self.bytes[1]


_Spans = Mapping[tuple[int, int], tuple[_Span, _Span]]
"""What a core writes and reads, by memory and the number of meetings before it."""


def _meeting_buffers(traces: Sequence[Tracer], buffers: Sequence[SharedBuffer]) -> list[SharedBuffer]:
    """The memories of which a core writes a part near one that another accesses: few kernels have any."""
    spans = [_spans(trace, {buffer.numbers[core] for buffer in buffers}) for core, trace in enumerate(traces)]
    return [buffer for buffer in buffers if _meet(spans, buffer.numbers)]


def _spans(trace: Tracer, numbers: Set[int]) -> _Spans:
    """What a core's DMAs access of some buffers."""
    accesses = _shared_accesses(trace, numbers)
    meetings = trace.shared.get("meetings", ())
    found: dict[tuple[int, int], tuple[_Span, _Span]] = {}
    for epoch, (first, end) in enumerate(pairwise((0, *meetings, trace.row_count))):
        for call in accesses.keys() & set(trace.call_rows[first:end]):
            for buffer, is_read, box in accesses[call]:
                spans = found.get((buffer, epoch))
                if spans is None:
                    spans = found[buffer, epoch] = _Span(), _Span()
                spans[is_read].add(*box)
    return found


def _shared_accesses(trace: Tracer, numbers: Set[int]) -> dict[int, list[tuple[int, bool, list[int]]]]:
    """Buffer, whether it is read, and box of what each call of a DMA accesses of some buffers."""
    moving = {kind.number for kind in trace.kind_list if kind.transfer is not None}
    found: dict[int, list[tuple[int, bool, list[int]]]] = {}
    for (kind, _, *regions), call in trace.calls.items():
        if kind in moving:
            for operand, region in enumerate(regions):
                buffer, *box = trace.regions[region] if region >= 0 else (-1,)
                if buffer in numbers:
                    found.setdefault(call, []).append((buffer, operand >= _WRITTEN.stop, box))
    return found


def _meet(spans: Sequence[_Spans], numbers: Sequence[int]) -> bool:
    """Whether any core writes what another writes or reads between the same two meetings."""
    for (one, first), (other, second) in itertools.permutations(zip(spans, numbers), 2):
        for (buffer, epoch), (written, _) in one.items():
            if buffer == first and any(map(written.meets, other.get((second, epoch), ()))):
                return True
    return False


def _compare_writes(
    traces: Sequence[Tracer],
    tables: Sequence[npt.NDArray[np.int32]],
    name: str,
    writes: Sequence[_Accesses],
) -> None:
    """Warn of the first place that two cores write."""
    for (first, one), (second, other) in itertools.combinations(enumerate(writes), 2):
        if not one.reaches(other):
            continue
        near = one.within(other)
        for at in near.distinct():
            races = other.overlapping(int(near.epoch[at]), near.box[at])
            if races.any():
                row = other.row[np.argmax(races)]
                there = traces[second].describe_site(int(tables[second][row, 1]))
                here = traces[first].describe_site(int(tables[first][near.row[at], 1]))
                warnings.warn(
                    f"{here}: cores {first} and {second} both write {name} ({there}), and nothing says which "
                    "comes last; unless both write the same values, let one of them write, or call "
                    "nisa.core_barrier between the two",
                    RaceWarning,
                    stacklevel=2,
                )
                return


def _transfers(trace: Tracer, rows: npt.NDArray[np.int32]) -> _Transfers:
    """The DMA transfers of a core that fill their boxes."""
    regions = trace.region_table().astype(np.int64)
    moved = np.array([-1 if k.transfer is None else k.transfer.bytes for k in trace.kind_list], np.int64)
    moving = np.flatnonzero(moved[rows[:, 0]] >= 0)
    place, operand = np.nonzero(rows[moving, _FIRST_OPERAND:] >= 0)
    row = moving[place]
    of_region = regions[rows[row, _FIRST_OPERAND + operand]]
    box = of_region[:, 1:]
    filled = (box[:, 1] - box[:, 0]) * (box[:, 3] - box[:, 2]) == moved[rows[row, 0]]
    meetings = np.array(trace.shared.get("meetings", ()), np.int64)
    row = row[filled]
    access = _Accesses(row, np.searchsorted(meetings, row, side="right"), box[filled])
    buffer, operand = of_region[filled, 0], operand[filled]
    changing = (operand >= _WRITTEN.stop) | ~_left_as_it_is(trace, rows[row])
    access = _Accesses(access.row[changing], access.epoch[changing], access.box[changing])
    buffer, operand = buffer[changing], operand[changing]
    return _Transfers(buffer, operand, access)


def _left_as_it_is(trace: Tracer, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Which transfers copy a place onto itself, and so only read it."""
    written, read = rows[:, _FIRST_OPERAND], rows[:, _FIRST_OPERAND + _READ.start]
    return np.asarray((written == read) & np.isin(written, list(trace.shared.get(IN_PLACE, ()))))


def _compare(
    traces: Sequence[Tracer],
    tables: Sequence[npt.NDArray[np.int32]],
    buffer: SharedBuffer,
    cores: tuple[int, int],
    reads: _Accesses,
    writes: _Accesses,
    own: _Accesses,
) -> None:
    """Refuse a read that a write of the other core races with, unless the reader wrote there itself."""
    reader, writer = cores
    reads = reads.within(writes)
    for at in reads.distinct():
        epoch, box = int(reads.epoch[at]), reads.box[at]
        races = writes.overlapping(epoch, box)
        if not races.any() or (own.overlapping(epoch, box) & (own.row < reads.row[at])).any():
            continue
        written_at = traces[writer].describe_site(int(tables[writer][writes.row[np.argmax(races)], 1]))
        kind = ArgumentRaceError if buffer.is_argument else RaceError
        raise kind(
            f"core {reader} reads {buffer.name} while core {writer} writes there ({written_at}), and nothing "
            "keeps them apart; call nisa.core_barrier between the two",
            traces[reader].describe_site(int(tables[reader][reads.row[at], 1])),
        )
