"""The two physical cores of one logical NeuronCore as threads that take turns and meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.core_race import SharedBuffer
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.turns import Condition, Turns


class SharedLaunch(Turns):
    """Two physical cores of one logical NeuronCore, taking turns until both wait for each other.

    Only one core's instance runs at a time; it hands over at a barrier, before writes and when it ends.

    Args:
        traces: Of each core.
        first: The core that begins.
        takes_turns_writing: Whether a core hands over before it writes to memory that cores share, too; else
            each goes on to its next meeting or its end.
    """

    def __init__(self, traces: Sequence[Tracer], first: int = 0, takes_turns_writing: bool = True) -> None:
        cores = len(traces)
        super().__init__(cores, "another core's instance failed", first)
        self.cores = cores
        self.takes_turns_writing = takes_turns_writing
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
        """Wait until every core has come to its barrier.

        Raises:
            NkiValidationError: No core can go on.
        """
        number = trace.shared["barriers"] = trace.shared.get("barriers", 0) + 1
        self._arrived[number] = self._arrived.get(number, 0) + 1
        self._meet(trace, "at a barrier", lambda: self._arrived[number] >= self.cores)

    def exchange(self, trace: Tracer, values: Any, to: int, source: int, pipe: int) -> Any:
        """Send values to a core and take those that another sent.

        Raises:
            NkiValidationError: The other core has ended and sent nothing, or no core can go on.
        """
        rank = self.rank[id(trace)]
        number = trace.shared[("pipe", pipe)] = trace.shared.get(("pipe", pipe), 0) + 1
        self._mail[pipe, number, rank, to] = values
        wanted = (pipe, number, source, rank)
        self._meet(trace, f"for data of core {source}", lambda: wanted in self._mail)
        if wanted not in self._mail:
            raise NkiValidationError(f"core {source} never sends what core {rank} waits for", tracing.where())
        return self._mail[wanted]

    def _meet(self, trace: Tracer, what: str, met: Condition) -> None:
        """Wait until something holds, or the other cores have ended.

        Raises:
            NkiValidationError: No core can go on.
        """
        rank = self.rank[id(trace)]
        trace.shared.setdefault("meetings", []).append(trace.row_count)

        def is_over() -> bool:
            return met() or not self.has_other_than(rank)

        if not is_over():
            self.switch(rank, is_over)
        if not is_over():
            raise NkiValidationError(
                f"the cores wait for one another, core {rank} {what}, and none can go on; let both come to "
                "their barriers and exchanges in one order",
                tracing.where(),
            )

    def write_in_turn(self, trace: Tracer) -> None:
        """Let the other cores come to their next write too, or as far as they can."""
        if self.takes_turns_writing:
            self.switch(self.rank[id(trace)])

    def has_other_than(self, rank: int) -> bool:
        """Whether another core's instance goes on."""
        return len(self._ended - {rank}) < self.cores - 1


class CoreTracer(Tracer):
    """The trace of one of the cores of a launch, which work side by side.

    Before a line of a core begins to write to memory that both know, the other one gets a turn. So where both
    first clear memory and then fill it, neither clears what the other has filled.
    """

    _writing = -1  # the call site of its last write to such memory

    def record(
        self, kind: Kind, w0: int, w1: int = -1, r0: int = -1, r1: int = -1, r2: int = -1, r3: int = -1
    ) -> int:
        """Add one instruction; the arguments are regions. Returns its call site, -1 where none is kept."""
        site = super().record(kind, w0, w1, r0, r1, r2, r3)
        if kind.transfer is not None and self.values and self._is_shared(w0):
            if site != self._writing or site < 0:
                self.launch.write_in_turn(self)
            self._writing = site
        return site

    def _is_shared(self, region: int) -> bool:
        return region >= 0 and self.buffers[self.regions[region][0]].region is MemoryRegion.shared_hbm
