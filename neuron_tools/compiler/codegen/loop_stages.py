"""Pipeline stages of a tile loop's steps, and the number of buffers that each tile needs for them.

Each time data goes on to another engine the pipeline gains a stage; a tile that is written in one stage
and read in a later one needs a buffer for every iteration in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.slot import Slot, Step
from neuron_tools.records.program import Engine, Memory

PREFETCH_BELOW_BYTES = (4096, 16384)
"""Tiles below each of these sizes (bytes per partition) get one more buffer: their transfers take about
as long as a transfer's latency."""

ONCE_AHEAD_STAGES = 1
"""Stages between the load of what stays for a whole loop and its first use."""
LONG_HELD_ITERATIONS = 4
"""A PSUM content that stays this long may have its buffer to itself: waits between two are rare."""
NEVER = 1 << 30
"""More iterations than any loop has: no PSUM content stays so long."""
_SEVERAL = "several"
"""Owner of a slot that engines fill in turn: for every reader, another engine's."""
_TOGETHER = "together"
"""The engines that `Pipelining.UNITS` takes for one."""


class Pipelining(Enum):
    """What works on different iterations at one time."""

    ENGINES = auto()
    """Every engine; an iteration's tiles stay for as many stages as engines work on it in turn."""
    UNITS = auto()
    """The DMA engines, the Tensor engine, and the other three, which share an iteration."""
    NONE = auto()


class StagedLoop:
    """The slots and steps of a loop, and how far apart in time they lie."""

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._steps: list[Step] = []
        self._prefetch = False
        self._ahead = True  # whether slots get the extra buffers that they ask for
        self._alone_from = NEVER

    def _plan(self, pipelining: Pipelining) -> None:
        stage_of: dict[Slot, tuple[int, Engine | str | None]] = {}
        pipelined = pipelining is not Pipelining.NONE
        deepest = 0
        for step in self._steps:
            worker = _worker(step, pipelining)
            stage = 0
            for slot in step.reads:
                before, producer = stage_of.get(slot, (0, worker))
                goes_on = pipelined and step.opens_stage and producer is not worker
                stage = max(stage, before + goes_on)
            if not step.opens_stage:
                stage = max(stage, deepest)
            step.stage = stage = stage if step.pinned_stage is None else step.pinned_stage
            deepest = max(deepest, stage if step.transfer is None else 0)
            for slot in step.writes:
                earlier = stage_of.get(slot)
                owner = _SEVERAL if step.in_turn and worker is not _TOGETHER else worker
                stage_of[slot] = (max(stage, earlier[0]) if earlier else stage, owner)
        self._settle_stages()
        self._load_late()
        for slot in self._slots:
            if slot.given is None:
                slot.buffers = self._buffers(slot, pipelined)

    def _settle_stages(self) -> None:
        """No step may come before an earlier step that touches the same slot, or on its own engine's data."""
        latest_touch: dict[Slot, int] = {}
        for step in self._steps:
            touched = step.writes
            if step.pinned_stage is None:
                step.stage = max([step.stage, *(latest_touch.get(slot, 0) for slot in touched)])
            for slot in (*step.reads, *step.writes):
                latest_touch[slot] = max(latest_touch.get(slot, 0), step.stage)

    def _load_late(self) -> None:
        """What is loaded once comes shortly before its first use: the first tiles need the bandwidth more."""
        for step in self._steps:
            if step.transfer is None or step.reads or not all(slot.stationary for slot in step.writes):
                continue
            uses = [other.stage for other in self._steps if set(other.reads) & set(step.writes)]
            if step.pinned_stage is None and uses:
                step.stage = max(step.stage, min(uses) - ONCE_AHEAD_STAGES)

    def _buffers(self, slot: Slot, pipelined: bool) -> int:
        versions = slot.contents
        if slot.whole:
            return versions
        if slot.stationary or versions == 1:
            return 1
        touching = [step for step in self._steps if slot in step.reads or slot in step.writes]
        if not touching:
            return 0
        span = max(step.stage for step in touching) - min(step.stage for step in touching)
        held = int(np.bincount(slot.version).min())
        is_held = slot.memory is Memory.PSUM and held >= self._alone_from
        if is_held or slot.read_first:
            # A reader one stage later comes before the next content's writer: one buffer will do.
            return min(versions, -(-max(span - 1, 0) // held) + 1)
        ahead = slot.extra_buffers if self._ahead else 0
        extra = ahead + (self._prefetched(slot, touching) if self._prefetch else 0)
        wanted = -(-span // held) + 1 + extra if pipelined else 1 + min(1, ahead)
        least = max(slot.least_buffers, _waiting(slot.version, span))
        return min(versions, max(wanted, least + ahead))

    @staticmethod
    def _prefetched(slot: Slot, touching: Sequence[Step]) -> int:
        """Buffers beyond double buffering that hide a transfer's latency: the smaller the tile, the more."""
        if all(step.transfer is None for step in touching):
            return 0
        return sum(slot.bytes_per_partition < size for size in PREFETCH_BELOW_BYTES)


def _worker(step: Step, pipelining: Pipelining) -> Engine | str | None:
    """Who does a step, as far as stages tell them apart; None for the DMA engines."""
    if step.transfer is not None:
        return None
    together = pipelining is Pipelining.UNITS and step.engine is not Engine.TENSOR
    return _TOGETHER if together else step.engine


def _waiting(version: Ints, span: int) -> int:
    """Contents that are needed at one time where later iterations meet them again; 0 where none do.

    A content's last reader must come before what is written to its buffer next, `span` stages earlier.
    """
    if not np.any(np.diff(version) < 0):
        return 0
    count = int(version.max()) + 1
    first, last = np.full(count, len(version)), np.zeros(count, np.int64)
    np.minimum.at(first, version, np.arange(len(version)))
    np.maximum.at(last, version, np.arange(len(version)))
    oldest = np.searchsorted(np.maximum.accumulate(last), first - span, side="right")
    return int((np.arange(count) - oldest).max()) + 1
