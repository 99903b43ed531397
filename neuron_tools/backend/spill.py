"""Spills: what does not fit in SBUF is stored to HBM and loaded again, what HBM holds only loaded again.

The compiler adds spills and refills when live data exceeds a memory (NKI memory hierarchy). NKIBench's
counters on Trn1 show the rest: what was unused longest goes, tile by tile (so swiglu's turned input is loaded
again in every turn of its loop, and lora's partial sums are saved and loaded in every turn: where tiles are
used in a circle that is too long, none of them stays); a value is saved once however often it comes back; a
loaded input is loaded again and never saved, and so goes before what would have to be saved. A row of one
partition takes as much room as a tile but is back at once, and goes first. mamba keeps half of its circle,
which this does not show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import (
    BUFFER,
    COLUMNS,
    FIRST_READ,
    FIRST_WRITE,
    KIND,
    SITE,
    SPILL,
    Body,
    Buffers,
)
from neuron_tools.backend.in_place import share_places
from neuron_tools.backend.kinds import Kind, Transfer
from neuron_tools.backend.order import written_buffers
from neuron_tools.backend.schedule import add_kind
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.records.program import DType, Memory

DESCRIPTOR_BYTES = 1 << 14
"""Ring of DMA descriptors: the lowest bytes of each partition (direct allocation guide; Trn2 traces)."""
_PARTITIONS = 128


RESIDENT_SHARE = 0.87
"""Part of SBUF that is in use where something spills: counters of bmm_softmax show 152.6 of 176 KiB."""


class WorkingSetError(NeuronToolsError):
    """One call's own operands do not fit.

    Attributes:
        row: The call.
    """

    def __init__(self, row: int) -> None:
        super().__init__("SBUF is full: the operands of one instruction do not fit; use smaller tiles")
        self.row = row


def usable_bytes(body: Body) -> int:
    """Bytes of each SBUF partition that buffers without a fixed place may take."""
    return body.core.sbuf_bytes_per_partition - DESCRIPTOR_BYTES


def live_bytes(body: Body) -> int:
    """Most bytes of each SBUF partition that live at one time, in the order of the calls."""
    from neuron_tools.backend.spill_kernel import peak, uses_of

    return int(peak(*uses_of(body.rows, body.regions, len(body.buffers)), _sizes(body), len(body)))


def live_banks(body: Body) -> int:
    """Most banks of PSUM whose tiles live at one time, in the order of the calls; tiles take whole ones."""
    from neuron_tools.backend.spill_kernel import peak, uses_of

    banks = -(-body.buffers.bytes_per_partition // body.core.psum_bank_bytes)
    banks = np.where(body.buffers.memory == int(Memory.PSUM), banks, 0)
    return int(peak(*uses_of(body.rows, body.regions, len(body.buffers)), banks, len(body)))


def spill(body: Body, share: float = 1.0) -> Body:
    """The body with what does not fit stored and loaded again.

    Args:
        body: A kernel that places no tile itself; one that does is left as it is, for then nothing spills.
        share: Part of SBUF that may be taken; the rest is room for fragments.

    Raises:
        WorkingSetError: A call's own operands do not fit.
    """
    if not _sizes(body).any() or body.is_placed:
        return body
    whole = int(usable_bytes(body) * share)
    shared = share_places(body, _loaded_by(body) >= 0) if body.loops_open else body
    for one in (body, shared):
        if live_bytes(one) <= whole:
            return one
    best = _best(body, shared, int(usable_bytes(body) * min(share, RESIDENT_SHARE)))
    if best.failed >= 0:
        best = _best(body, shared, whole)
    if best.failed >= 0:
        raise WorkingSetError(best.failed)
    return (
        best.body if best.is_done else _Rewrite(best.body, best.events, best.versions, best.loaded_by).body()
    )


def _best(body: Body, shared: Body, capacity: int) -> _Plan:
    """The plan that moves least, with and without places that results share with operands."""
    plans = [_planned(body, capacity)] + ([_planned(shared, capacity)] if shared is not body else [])
    return min(plans, key=lambda plan: (plan.failed >= 0, plan.moved_bytes))


@frozen
class _Plan:
    """What leaves SBUF and comes back.

    Attributes:
        events, versions, failed: As `spill_kernel.spill` gives them.
        loaded_by: The load that makes each buffer, or -1.
        moved_bytes: Bytes of each partition that go and come.
    """

    body: Body
    events: Ints
    versions: np.ndarray
    failed: int
    loaded_by: Ints
    moved_bytes: int

    @property
    def is_done(self) -> bool:
        """Whether all fits without."""
        return self.failed < 0 and not len(self.events)


def _planned(body: Body, capacity: int) -> _Plan:
    from neuron_tools.backend.spill_kernel import peak, spill as walk, uses_of

    size = _sizes(body)
    start, uses = uses_of(body.rows, body.regions, len(body.buffers))
    if peak(start, uses, size, len(body)) <= capacity:
        return _Plan(body, np.zeros((0, 4), np.int64), np.zeros((0, 0), np.int32), -1, start, 0)
    loaded_by = _loaded_by(body)
    freed = np.maximum(_PARTITIONS // np.maximum(body.buffers.lines, 1), 1)
    events, versions, failed = walk(body.rows, body.regions, size, start, uses, loaded_by, freed, capacity)
    return _Plan(body, events, versions, int(failed), loaded_by, int(size[events[:, 2]].sum()))


def _sizes(body: Body) -> Ints:
    size = -(-body.buffers.bytes_per_partition // 32) * 32
    return np.where((body.buffers.memory == int(Memory.SBUF)) & (body.buffers.address < 0), size, 0)


def _loaded_by(body: Body) -> Ints:
    """The one call that writes each buffer, where that is a load of all of it from what nobody writes."""
    count = len(body.buffers)
    writers = np.zeros(count, np.int64)
    result = np.full(count, -1, np.int64)
    for slot in range(FIRST_WRITE, FIRST_READ):
        at = np.flatnonzero(body.rows[:, slot] >= 0)
        buffer = body.regions[body.rows[at, slot], BUFFER]
        writers += np.bincount(buffer, minlength=count)
        result[buffer] = at
    is_load = np.array([_is_plain_load(kind) for kind in body.kinds], bool)
    found = np.flatnonzero((writers == 1) & (result >= 0))
    rows = body.rows[result[found]]
    source = body.regions[rows[:, FIRST_READ], BUFFER]
    region = body.regions[rows[:, FIRST_WRITE]].astype(np.int64)
    whole = (region[:, 2] - region[:, 1] == body.buffers.lines[found]) & (
        region[:, 4] - region[:, 3] == body.buffers.pitch_bytes[found]
    )
    kept = is_load[rows[:, KIND]] & whole & (rows[:, FIRST_READ] >= 0) & ~written_buffers(body)[source]
    result[:] = np.where(np.isin(np.arange(count), found[kept]), result, -1)
    return result


def _is_plain_load(kind: Kind) -> bool:
    transfer = kind.transfer
    return (
        transfer is not None
        and transfer.collective is None
        and transfer.source_memory is Memory.HBM
        and transfer.destination_memory is Memory.SBUF
    )


class _Rewrite:
    """Builds the body with the stores and loads that were put in."""

    def __init__(self, body: Body, events: Ints, versions: np.ndarray, loaded_by: Ints) -> None:
        self.before = body
        self.events = events
        self.versions = versions
        self.loaded_by = loaded_by
        self.kinds = list(body.kinds)
        self._moves: dict[tuple[int, int, int, bool], int] = {}

    def body(self) -> Body:
        """The result."""
        body, events = self.before, self.events
        renewed = events[events[:, 1] != 0]  # RELOAD and LOAD_AGAIN give a new version
        count = len(body.buffers)
        keys = renewed[:, 2] * (1 << 20) + renewed[:, 3]
        copies = body.buffers.take(renewed[:, 2])
        spilled = np.unique(events[events[:, 1] == 0, 2])
        home = np.full(count, -1, np.int64)
        home[spilled] = count + len(renewed) + np.arange(len(spilled))
        order = np.argsort(keys, kind="stable")
        self._keys, self._copies = keys[order], count + order
        buffers = body.buffers.joined(copies).joined(_in_hbm(body.buffers.take(spilled)))
        rows, regions = self._renamed()
        extra, extra_regions = self._inserted(home, len(regions))
        at = np.concatenate([events[:, 0] * 2, np.arange(len(rows)) * 2 + 1])
        place = np.argsort(at, kind="stable")
        origin = np.concatenate([np.full(len(events), -1, np.int64), body.origin])
        return replace(
            body, rows=np.ascontiguousarray(np.concatenate([extra, rows])[place]), kinds=self.kinds,
            regions=np.concatenate([regions, extra_regions]).astype(np.int32), buffers=buffers,
            origin=origin[place],
        )  # fmt: skip

    def _version(self, buffer: Ints, version: Ints) -> Ints:
        """Buffer that holds a version of a buffer."""
        at = np.searchsorted(self._keys, buffer * (1 << 20) + version)
        at = np.minimum(at, max(len(self._keys) - 1, 0))
        return np.where(version > 0, self._copies[at] if len(self._copies) else buffer, buffer)

    def _renamed(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows whose operands name the version that is there, and the regions with the new ones."""
        body = self.before
        rows = body.rows.copy()
        renamed = self.versions > 0
        at, slot = np.nonzero(renamed)
        region = rows[at, FIRST_WRITE + slot].astype(np.int64)
        held = region >= 0
        at, slot, region = at[held], slot[held], region[held]
        buffer = body.regions[region, BUFFER].astype(np.int64)
        target = self._version(buffer, self.versions[at, slot].astype(np.int64))
        pairs, inverse = np.unique(np.stack([region, target], 1), axis=0, return_inverse=True)
        new = body.regions[pairs[:, 0]].copy()
        new[:, BUFFER] = pairs[:, 1]
        rows[at, FIRST_WRITE + slot] = len(body.regions) + inverse.reshape(-1)
        return rows, np.concatenate([body.regions, new])

    def _inserted(self, home: Ints, base: int) -> tuple[np.ndarray, np.ndarray]:
        """The stores and loads, and their regions: the whole of a version, and of its place in HBM."""
        body, events = self.before, self.events
        what, buffer = events[:, 1], events[:, 2]
        rows = np.full((len(events), COLUMNS), -1, np.int32)
        on_chip = self._version(buffer, events[:, 3])
        inside = _whole(body.buffers, buffer, on_chip)
        outside = _whole(body.buffers, buffer, home[buffer])
        here, there = base + 2 * np.arange(len(events)), base + 2 * np.arange(len(events)) + 1
        again = what == 2
        rows[:, FIRST_WRITE] = np.where(what == 0, there, here)
        rows[:, FIRST_READ] = np.where(what == 0, here, there)
        source = self.loaded_by[buffer[again]]
        rows[again, FIRST_READ] = body.rows[source, FIRST_READ]
        rows[:, SITE] = body.rows[np.minimum(events[:, 0], len(body) - 1), SITE]
        rows[again, KIND] = body.rows[source, KIND]
        lines, pitch = body.buffers.lines, body.buffers.pitch_bytes
        for row in np.flatnonzero(~again):
            number = int(buffer[row])
            rows[row, KIND] = self._move(int(lines[number]), int(pitch[number]), bool(what[row] == 0))
        regions = np.empty((2 * len(events), 5), np.int64)
        regions[0::2], regions[1::2] = inside, outside
        return rows, regions

    def _move(self, lines: int, pitch: int, saves: bool) -> int:
        key = (lines, pitch, 0, saves)
        found = self._moves.get(key)
        if found is None:
            ends = (Memory.SBUF, Memory.HBM) if saves else (Memory.HBM, Memory.SBUF)
            made_by = "hardware" if self.before.core.generation >= 3 else "runtime"
            transfer = Transfer(
                *ends, DType.U8, lines * pitch, pitch, lines, descriptors_by=made_by, is_open=True
            )
            name = "spill_save" if saves else "spill_reload"
            found = self._moves[key] = add_kind(self.kinds, Kind(name, transfer=transfer))
        return found


def _whole(buffers: Buffers, shape_of: Ints, buffer: Ints) -> Ints:
    """Regions that cover whole buffers of given shapes."""
    region = np.zeros((len(buffer), 5), np.int64)
    region[:, 0], region[:, 2] = buffer, buffers.lines[shape_of]
    region[:, 4] = buffers.pitch_bytes[shape_of]
    return region


def _in_hbm(buffers: Buffers) -> Buffers:
    buffers.memory[:] = int(Memory.HBM)
    buffers.role[:] = SPILL
    return buffers
