"""The two physical cores of one logical NeuronCore as threads that take turns and meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.core_race import SharedBuffer
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.turns import Turns


class SharedLaunch(Turns):
    """Two physical cores of one logical NeuronCore, taking turns until both wait for each other.

    Only one core's instance runs at a time; it hands over when it waits at a barrier or ends.

    Args:
        traces: Of each core.
        first: The core that begins.
    """

    def __init__(self, traces: Sequence[Tracer], first: int = 0) -> None:
        cores = len(traces)
        super().__init__(cores, "another core's instance failed", first)
        self.cores = cores
        self._arrived: dict[Any, int] = {}
        self._buffers: dict[Any, Buffer] = {}
        self._numbers: dict[Any, dict[int, int]] = {}
        self._mail: dict[Any, Any] = {}
        self.rank = {id(trace): rank for rank, trace in enumerate(traces)}

    def share(self, key: Any, storage: Buffer) -> None:
        """Let tensors in shared HBM of the same name be one memory on all cores."""
        storage.written_all()
        self._numbers.setdefault(key, {})[self.rank[id(tracing.active())]] = storage.number
        first = self._buffers.setdefault(key, storage)
        if first is not storage:
            storage.factory = lambda: first.data

    def shared_buffers(self) -> list[SharedBuffer]:
        """The tensors in shared HBM that every core made."""
        return [
            SharedBuffer(self._buffers[key].name, tuple(numbers[rank] for rank in range(self.cores)))
            for key, numbers in self._numbers.items()
            if len(numbers) == self.cores
        ]

    def barrier(self, trace: Tracer) -> None:
        """Wait until every core has come to its barrier."""
        rank = self.rank[id(trace)]
        number = trace.shared["barriers"] = trace.shared.get("barriers", 0) + 1
        self._arrived[number] = self._arrived.get(number, 0) + 1
        _note_meeting(trace)
        while self._arrived[number] < self.cores and len(self._ended) < self.cores - 1:
            self.switch(rank)

    def exchange(self, trace: Tracer, values: Any, to: int, source: int, pipe: int) -> Any:
        """Send values to a core and take those that another sent.

        Raises:
            NkiValidationError: The other core has ended and sent nothing.
        """
        rank = self.rank[id(trace)]
        number = trace.shared[("pipe", pipe)] = trace.shared.get(("pipe", pipe), 0) + 1
        self._mail[pipe, number, rank, to] = values
        _note_meeting(trace)
        wanted = (pipe, number, source, rank)
        while wanted not in self._mail:
            if len(self._ended) >= self.cores - 1:
                raise NkiValidationError(
                    f"core {source} never sends what core {rank} waits for", tracing.where()
                )
            self.switch(rank)
        return self._mail[wanted]

    def has_other_than(self, rank: int) -> bool:
        """Whether another core's instance goes on."""
        return len(self._ended - {rank}) < self.cores - 1


def _note_meeting(trace: Tracer) -> None:
    """Remember the row before which the cores met."""
    trace.shared.setdefault("meetings", []).append(trace.row_count)
