"""`nki.isa.NkiInstruction`: the handle of an issued instruction, to which others can be tied."""

from __future__ import annotations

from enum import Enum

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.tracer import Tracer


class dependency(Enum):
    """What a dependency between two instructions asks for.

    Attributes:
        runtime: The later instruction waits, in hardware, until the earlier one is done.
        schedule: The compiler issues them in this order; engines may still overlap them.
    """

    runtime = 0
    schedule = 1


class NkiInstruction:
    """Handle of an issued instruction, as the functions of `nki.isa` return it.

    Attributes:
        row: Its number among the recorded instructions of its trace; -1 where nothing is recorded.
    """

    __slots__ = ("_trace", "row")

    def __init__(self, handle: Tracer) -> None:
        self._trace = handle
        self.row = len(handle.call_rows) - 1

    def depends_on(self, *producers: NkiInstruction, kind: dependency | None = None) -> NkiInstruction:
        """Run this instruction after others, which must have been issued before it.

        Args:
            producers: Instructions of the same kernel.
            kind: `dependency.runtime` (the default) waits for their results; `dependency.schedule` asks
                for the order of issue alone, which the simulator keeps anyway.

        Returns:
            This handle, so that calls can be chained.

        Raises:
            NkiValidationError: A producer comes later, or is of another kernel.
        """
        for producer in producers:
            if producer._trace is not self._trace or producer.row > self.row:
                raise NkiValidationError(
                    "an instruction can depend only on instructions of the same kernel issued before it; "
                    "issue the producer first",
                    tracing.where(),
                )
            if kind is not dependency.schedule and self._trace.recording and producer.row < self.row:
                self._trace.ties.append((self.row, producer.row))
        return self


def issued() -> NkiInstruction:
    """The handle of the instruction that was issued last."""
    return NkiInstruction(tracing.active())
