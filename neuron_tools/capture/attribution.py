"""Which line and module an execution belongs to.

A forward operation knows its own stack and module. A backward operation runs on autograd's own thread,
where there is no Python: it knows the sequence number of the forward operation it differentiates, and
takes line and module from there, marked backward.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NO_SEQUENCE = -1


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an execution came from: numbers of the log's stack and module definitions."""

    stack: int
    module: int
    backward: bool


class Attribution:
    """Follows the records of one process in order and says each execution's origin.

    An autograd node may have been made by an operation without a record (a view): the nearest recorded
    forward operation before it, on the same thread, stands for it. Backward operations that belong to no
    forward operation (gradient accumulation, zeros for results that nobody used) take the last origin known,
    and one that is in no module the last module known.
    """

    def __init__(self) -> None:
        self._forward: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        self._order: dict[int, list[int]] = defaultdict(list)
        self._last = (0, 0)
        self._last_module = 0

    def origin(self, record: npt.NDArray[np.void] | np.void) -> Origin:
        """Origin of one OPERATION or GRAPH record; call in the order of the log."""
        stack, module = int(record["stack"]), int(record["module"])
        forward = int(record["forward_sequence"])
        if forward != NO_SEQUENCE:
            found = self._find(int(record["forward_thread"]), forward)
            if found is not None:
                return Origin(*found, True)
            if stack == 0:
                stack, module = self._last
            return Origin(stack, module or self._last_module, True)
        if stack == 0:
            return Origin(*self._last, False)
        self._remember(int(record["thread"]), int(record["sequence"]), stack, module)
        return Origin(stack, module, False)

    def passive_origin(self, record: npt.NDArray[np.void] | np.void) -> Origin:
        """Origin of a record that tells nothing of others: a collective, logged when it ends, or memory."""
        stack, module = int(record["stack"]), int(record["module"])
        if stack != 0:
            return Origin(stack, module, False)
        forward = int(record["forward_sequence"])
        found = self._find(int(record["forward_thread"]), forward) if forward != NO_SEQUENCE else None
        return Origin(*(found or self._last), True)

    def _remember(self, thread: int, sequence: int, stack: int, module: int) -> None:
        self._last = (stack, module)
        self._last_module = module or self._last_module
        known = self._forward[thread]
        if sequence >= 0 and sequence not in known:
            known[sequence] = (stack, module)
            order = self._order[thread]
            if order and order[-1] > sequence:
                insort(order, sequence)
            else:
                order.append(sequence)

    def _find(self, thread: int, sequence: int) -> tuple[int, int] | None:
        """The forward origin at or before a sequence number; with one forward thread there is no doubt."""
        if len(self._forward) == 1:
            thread = next(iter(self._forward))
        known, order = self._forward.get(thread), self._order.get(thread)
        if not known or not order:
            return None
        index = bisect_right(order, sequence) - 1
        return known[order[index]] if index >= 0 else None
