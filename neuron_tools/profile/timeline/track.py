"""What a track is: one row of the timeline, with a place in the tree process -> core -> level."""

from __future__ import annotations

from neuron_tools.frozen import frozen

COUNTER = "counter"

LEVELS = (
    "host_thread", "thread", "annotation", "runtime", "execution", "module", "framework", "hlo", "penguin",
    "bir", "engine", "stream", "queue", "dma_queue", "dma_engine", "collective", "collective_core",
    "throttle", "memory", "other", COUNTER,
)  # fmt: skip
"""Levels in the order in which the tracks of one heading are drawn."""

ENGINES = ("Tensor", "TensorMatrix", "Vector", "Scalar", "GpSimd", "Sync")
"""Engines in the order in which they are drawn; others follow by name."""

GROUPS = {
    "runtime": "Neuron runtime",
    "dma_queue": "DMA queues",
    "dma_engine": "DMA engines",
    "collective": "Collectives",
    "collective_core": "CC-cores",
    COUNTER: "Counters",
}
"""Headings above the tracks of some levels."""


@frozen
class Track:
    """One row of the timeline.

    Attributes:
        id: Names the track within its profile, and in every profile of the same program: `p0/core0/hlo`.
        level: What its spans are: one of `LEVELS`.
        name: What to write beside it.
        headings: Names of what it stands under, outermost first: process, core or device, group.
        process_idx: ProcessInfo.process_idx.
        rank: Rank of the process in its distributed job; None if it has none.
        core_idx: NeuronCore or device; None for what belongs to the host.
        table: Table whose rows are its spans or samples.
        spans: Spans; of a counter, samples.
        depths: Rows that its spans need: 1 where none overlap.
        start_ns, end_ns: Range that its spans cover, in ns from the profile's start.
        unit: Of a counter's values.
        replica_of: Id of the track with its spans, where its rank was simulated but did not run.
    """

    id: str
    level: str
    name: str
    headings: tuple[str, ...]
    process_idx: int
    rank: int | None
    core_idx: int | None
    table: str
    spans: int
    depths: int
    start_ns: int
    end_ns: int
    unit: str = ""
    replica_of: str = ""

    @property
    def is_counter(self) -> bool:
        """Whether it has samples of a value in place of spans."""
        return self.level == COUNTER


def drawing_order(track: Track) -> tuple[object, ...]:
    """Sorts tracks as they are drawn: ranks, then the host before the cores, then levels, then names."""
    rank = (track.rank is None, track.rank or 0, track.process_idx)
    place = -1 if track.core_idx is None else track.core_idx
    level = LEVELS.index(track.level) if track.level in LEVELS else len(LEVELS)
    engine = ENGINES.index(track.name) if track.level == "engine" and track.name in ENGINES else len(ENGINES)
    return (*rank, place, level, track.headings, engine, natural(track.name), track.id)


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that puts "queue 9" before "queue 10"."""
    import re

    parts = re.split(r"(\d{1,18})", text)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part)
