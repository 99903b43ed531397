"""Which line and module an execution belongs to.

A forward operation knows its own stack and module. A backward operation has no Python: it knows the sequence
number of the forward operation it differentiates, and takes line and module from there, marked backward. What
hooks do after one is backward at its own line, and so is a backward operation written in Python, called by
whoever called the forward operation. Activation checkpointing computes again in the middle of a
backward operation: what is done in a module, or is to be differentiated in turn, is forward at its own line,
called in the same way.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from neuron_tools.arrays import Table
from neuron_tools.capture.host_rows import IN_OPTIMIZER
from neuron_tools.records.capture_log import RecordKind

NO_SEQUENCE = -1
IN_BACKWARD = 16  # bit of the record column `flags`
REMEMBERED = 1 << 20
"""Forward operations of a thread that are remembered at least: far more than one step makes."""
REMEMBERED_THREADS = 8
"""Threads whose forward operations are remembered: those that ran one last."""


class Origin(NamedTuple):
    """Where an execution came from: numbers of the log's stack and module definitions.

    Attributes:
        recomputed: A backward pass computes it again, which is forward work.
        caller: Of that, of its gradients, hooks and a backward written in Python, the stack of the forward
            operation that it is part of, which autograd's thread does not have; 0 = none.
    """

    stack: int
    module: int
    backward: bool
    recomputed: bool = False
    caller: int = 0


class LoggedExecution(NamedTuple):
    """What a record tells of an execution, as numbers of Python, which are read faster one by one."""

    kind: int
    device: int
    thread: int
    executable: int
    stack: int
    module: int
    device_start_ns: int
    device_end_ns: int
    sequence: int
    forward_sequence: int
    forward_thread: int
    flags: int
    address: int

    @classmethod
    def of(cls, records: Table) -> Iterator[LoggedExecution]:
        """Each of some records of the log."""
        return map(cls._make, zip(*(records[name].tolist() for name in cls._fields)))


Place = tuple[int, int, int]
"""Stack, module and caller."""
_NOWHERE: Place = (0, 0, 0)


@dataclass(slots=True)
class _Forward:
    """The forward operations of one thread, by ascending sequence number; 20 bytes for each."""

    sequence: array[int] = field(default_factory=lambda: array("q"))
    stack: array[int] = field(default_factory=lambda: array("I"))
    module: array[int] = field(default_factory=lambda: array("I"))
    caller: array[int] = field(default_factory=lambda: array("I"))

    def add(self, sequence: int, origin: Place) -> None:
        """Remember an operation; of two with the same number, the first."""
        place = len(self.sequence)
        if place and self.sequence[-1] >= sequence:
            place = bisect_right(self.sequence, sequence)
            if place and self.sequence[place - 1] == sequence:
                return
        for column, value in zip(self._columns, (sequence, *origin)):
            column.insert(place, value)
        if len(self.sequence) >= 2 * REMEMBERED:
            for column in self._columns:
                del column[:REMEMBERED]

    @property
    def _columns(self) -> tuple[array[int], ...]:
        return self.sequence, self.stack, self.module, self.caller

    def find(self, sequence: int, *, is_own: bool = False) -> Place | None:
        """Where the operation at or before a sequence number, or that has it, came from."""
        place = bisect_right(self.sequence, sequence) - 1
        if place < 0 or (is_own and self.sequence[place] != sequence):
            return None
        return self.stack[place], self.module[place], self.caller[place]


class Attribution:
    """Follows the records of one process in order and says each execution's origin.

    An autograd node may have been made by an operation without a record (a view): the nearest recorded
    forward operation before it, on the same thread, stands for it. Backward operations that belong to no
    forward operation (gradient accumulation, zeros for results that nobody used) take the last origin known,
    and one that is in no module the last module known.

    Memory is bounded however long the log is: the last operations of the last threads are remembered.
    """

    def __init__(self) -> None:
        self._forward: OrderedDict[int, _Forward] = OrderedDict()
        self._last: Place = (0, 0, 0)
        self._last_module = 0
        self._differentiated: dict[int, Place] = {}
        """By thread: what the gradient computed last is of, while a backward pass goes on."""

    def origin(self, record: LoggedExecution) -> Origin:
        """Origin of one OPERATION or GRAPH record; call in the order of the log."""
        stack, module = record.stack, record.module
        if backward := self._backward_origin(record, stack, module):
            return backward
        if stack == 0:
            return _origin(self._last, backward=False)
        if not record.flags & IN_BACKWARD:
            self._differentiated.clear()
        origin = self._called(record, stack, module)
        self._remember(record.thread, record.sequence, (stack, module, origin.caller))
        return origin

    def passive_origin(self, record: LoggedExecution) -> Origin:
        """Origin of a record that tells nothing of others: a collective, logged when it ends, or memory."""
        stack, module = record.stack, record.module
        if backward := self._backward_origin(record, stack, module):
            return backward
        return self._called(record, stack, module) if stack else _origin(self._last, backward=True)

    def _called(self, record: LoggedExecution, stack: int, module: int) -> Origin:
        """Origin of what a module or the program does, also while a backward pass goes on."""
        if not _is_recomputed(record):
            return Origin(stack, module, False, caller=self._differentiating(record))
        # A function of Python whose forward computes nothing has no operation: the one before is another's.
        forward = self._find(record.forward_thread, record.forward_sequence, is_own=True)
        return Origin(stack, module, False, recomputed=True, caller=_caller(forward or _NOWHERE))

    def _backward_origin(self, record: LoggedExecution, stack: int, module: int) -> Origin | None:
        """Origin of what autograd does, or a hook of it; None of what a module or the program does."""
        # Computed again: autograd calls no module of itself, and makes no node of what it does.
        if stack != 0 and (module != 0 or record.sequence != NO_SEQUENCE):
            return None
        forward = record.forward_sequence
        if forward == NO_SEQUENCE:
            in_hook = stack and record.flags & IN_BACKWARD
            return Origin(stack, module, True, caller=self._differentiating(record)) if in_hook else None
        if found := self._find(record.forward_thread, forward):
            self._differentiated[record.thread] = found
            if stack == 0 or record.kind == RecordKind.GRAPH:  # called by what runs graphs, not by a program
                return _origin(found, backward=True)
            return Origin(stack, found[1], True, caller=_caller(found))
        stack, module, caller = self._last if stack == 0 else (stack, module, 0)
        return Origin(stack, module or self._last_module, True, caller=caller)

    def _differentiating(self, record: LoggedExecution) -> int:
        """Who called the forward operation whose gradient the thread computed last."""
        return _caller(self._differentiated.get(record.thread, _NOWHERE))

    def _remember(self, thread: int, sequence: int, origin: Place) -> None:
        self._last = origin
        self._last_module = origin[1] or self._last_module
        if sequence < 0:
            return
        if thread not in self._forward:
            self._forward[thread] = _Forward()
            if len(self._forward) > REMEMBERED_THREADS:
                self._forward.popitem(last=False)
        self._forward.move_to_end(thread)
        self._forward[thread].add(sequence, origin)

    def _find(self, thread: int, sequence: int, *, is_own: bool = False) -> Place | None:
        """The forward origin of a sequence number; with one forward thread there is no doubt."""
        if len(self._forward) == 1:
            thread = next(iter(self._forward))
        known = self._forward.get(thread)
        return None if known is None else known.find(sequence, is_own=is_own)


def _caller(place: Place) -> int:
    """The stack of whoever called from outside: of the place's caller, else its own."""
    stack, _, caller = place
    return caller or stack


def _origin(place: Place, *, backward: bool) -> Origin:
    stack, module, caller = place
    return Origin(stack, module, backward, caller=caller)


def _is_recomputed(record: LoggedExecution) -> bool:
    """Of what a module or the program does: whether a backward pass goes on, and no optimizer steps in it."""
    flags = record.flags
    in_backward = record.forward_sequence != NO_SEQUENCE or flags & IN_BACKWARD
    return bool(in_backward and not flags & IN_OPTIMIZER)
