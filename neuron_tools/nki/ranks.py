"""Kernels that several ranks run together: who they are, and how their data meets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from neuron_tools.arrays import Array
from neuron_tools.frozen import frozen
from neuron_tools.nki import execution, tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.kernel_ranges import traced_ranges
from neuron_tools.nki.run import Run
from neuron_tools.nki.tracer import Recording
from neuron_tools.nki.turns import Turns


class Communicator(Protocol):
    """Moves values between the ranks that run a kernel."""

    @property
    def rank(self) -> int:
        """This rank."""
        ...

    def exchange(self, group: Sequence[int], array: Array) -> list[Array]:
        """What every rank of a group (this one among them) gave, in the group's order.

        Args:
            group: Ranks that call this, each with a group of the same ranks.
            array: This rank's values.
        """
        ...


_OWN: ContextVar[Communicator | None] = ContextVar("communicator", default=None)
_FRUITLESS_TURNS = 8
"""Turns per rank without progress after which its two cores have both been at work."""
_PROCESS: list[Callable[[], Communicator | None]] = []


def register_communicator(find: Callable[[], Communicator | None]) -> None:
    """Let `find` tell the communicator of this process: a framework's, where its ranks are set up."""
    _PROCESS.append(find)


def communicator() -> Communicator | None:
    """Who moves values for the kernel that is running; None where it is simulated on its own."""
    return _OWN.get() or next((found for find in _PROCESS if (found := find()) is not None), None)


def run_ranks(
    kernel: Kernel,
    arguments: Sequence[tuple[Any, ...]],
    *,
    values: bool = True,
    recording: Recording = Recording.ALL,
) -> list[Run]:
    """Run a kernel on several ranks in one process, so that its collectives have their partners.

    In a capture each rank is an execution on NeuronCores of its own, side by side with the others.

    Args:
        kernel: The kernel.
        arguments: Each rank's arguments.
        values: Whether to compute values; without, nothing is executed.
        recording: What of the runs to keep; a capture keeps all.

    Returns:
        Each rank's run: its outputs, and the trace that `lowering.lower` makes a Program of where all is
        recorded.

    Raises:
        NkiError: The kernel breaks a rule on a rank, or a rank waits for one that has ended.
    """

    def runs(kept: Recording) -> list[Run]:
        return _RanksInTurn(kernel, arguments, {"values": values, "recording": kept}).run()

    return execution.execute_ranks(kernel, runs, recording) if values else runs(recording)


@frozen
class Meeting:
    """One collective of a group of ranks: of two cores of a rank each meets the same core of the others.

    Attributes:
        core: Physical core of the logical NeuronCore.
        group: The ranks.
        number: Counts that core's meetings with them.
    """

    core: int
    group: tuple[int, ...]
    number: int


class _RanksInTurn(Turns):
    """Ranks as threads of which one runs at a time; it hands over when it waits for another."""

    def __init__(self, kernel: Kernel, arguments: Sequence[tuple[Any, ...]], options: dict[str, Any]) -> None:
        super().__init__(len(arguments), "another rank failed")
        self._kernel = kernel
        self._arguments = arguments
        self._options = options
        self._runs: list[Any] = [None] * len(arguments)
        self._mail: dict[Meeting, dict[int, Array]] = {}
        self._fruitless = 0  # turns since a rank gave something or ended

    def run(self) -> list[Run]:
        """Every rank to its end."""
        with traced_ranges(self._kernel.func):
            self.run_all(self._work)
        return self._runs

    def _work(self, rank: int) -> None:
        _OWN.set(_RankInTurn(rank, self))
        self._runs[rank] = self._kernel.run(*self._arguments[rank], **self._options)
        self._fruitless = 0

    def give(self, rank: int, meeting: Meeting, array: Array) -> list[Array]:
        """Leave an array for a meeting, and wait until all of the group have."""
        group, launch = meeting.group, tracing.active().launch
        box = self._mail.setdefault(meeting, {})
        box[rank] = array
        self._fruitless = 0
        while len(box) < len(group):
            if launch is not None and launch.has_other_than(meeting.core):
                launch.switch(meeting.core)  # the other core may have to come first, to a barrier say
                if len(box) == len(group):
                    break
            missing = next(member for member in group if member not in box)
            if missing in self._ended or missing >= self.count:
                raise NkiValidationError(
                    f"rank {rank} waits in a collective for rank {missing}, which does not take part",
                    tracing.where(),
                )
            self._refuse_deadlock(rank, group)
            self.switch(rank)
        return [box[member] for member in group]

    def _refuse_deadlock(self, rank: int, group: tuple[int, ...]) -> None:
        """Refuse to go on where every core of every rank has had turns and none has given anything."""
        self._fruitless += 1
        if self._fruitless > _FRUITLESS_TURNS * self.count:
            raise NkiValidationError(
                f"all ranks wait for one another, rank {rank} in a collective of {group}, others elsewhere "
                "or at a barrier; let the cores of all ranks come to collectives and barriers in one order",
                tracing.where(),
            )


class _RankInTurn:
    """The communicator of one of the ranks."""

    def __init__(self, rank: int, ranks: _RanksInTurn) -> None:
        self.rank = rank
        self._ranks = ranks
        self._meetings: Counter[tuple[int, tuple[int, ...]]] = Counter()

    def exchange(self, group: Sequence[int], array: Array) -> list[Array]:
        trace, members = tracing.active(), tuple(group)
        core = trace.launch.rank[id(trace)] if trace.launch is not None else 0
        self._meetings[core, members] += 1
        meeting = Meeting(core, members, self._meetings[core, members])
        return self._ranks.give(self.rank, meeting, array)
