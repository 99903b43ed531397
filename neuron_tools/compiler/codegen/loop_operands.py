"""Operands of a loop group: loaded tile by tile, once, or made by counting."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.loop_state import LoopState
from neuron_tools.compiler.codegen.micro import External
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.views import Spread
from neuron_tools.records.program import DType, Engine, Memory, Opcode

KEPT_SHARE = 0.7
"""Of SBUF, for operands whose chunks stay there."""


class LoopOperands(LoopState):
    """Declares a slot and its load for each operand from outside."""

    def _external(self, external: External) -> None:
        form = external.form
        resident = self._resident(external)
        if resident is not None:
            self._slots[external.key] = slot = resident.read(self._rows)
            self._loop.given(slot)
            self._residents.append((resident, slot))
            return
        dtype = chip_dtype(self._context.type_of(external.stored_value).dtype)
        repeated = self._spread_of(external)
        if repeated is not None:
            self._slots[external.key] = self._repeated(external, repeated, dtype)
            return
        if form in ("full", "expand", "iota_full"):
            slot = self._tiles(external, dtype)
        elif form in ("column", "iota_column"):
            self._column(external, dtype)
            return
        else:
            slot = self._row_vector(external, dtype)
        self._slots[external.key] = slot

    def _tiles(self, external: External, dtype: DType) -> Slot:
        """Tiles of an operand, all or some of which stay for the passes that read them again."""
        levels = self._needed.get(external.key, {0})
        if self._is_kept(levels, dtype):
            slot = self._kept(dtype)
            self._fill(external, slot, self._active({min(levels)}))
            return slot
        slot = self._loop.slot("operand", self._tile_bytes(dtype), dtype, extra_buffers=1 + self._slack)
        active = self._active(levels)
        if not self._keeps_part(external):
            self._fill(external, slot, active)
            return slot
        stays = self._stays
        self._fill(external, slot, ~stays if active is None else active & ~stays)
        kept = self._parts_kept[slot] = self._kept_part(dtype)
        self._fill(external, kept, stays & np.isin(self._level, [min(levels)]))
        return slot

    def _fill(self, external: External, slot: Slot, active: Bools | None) -> None:
        if external.form == "iota_full":
            self._iota(slot, self._elements, active)
        else:
            self._load(external, slot, self._tile_elements, self._full_run(external), active)

    def keep(self, count: int) -> None:
        """Let `count` tiles of each row of tiles stay, spread evenly: loads then go on all the time."""
        chunks, number = self._space.chunks, self._space.chunk_number()
        self._kept_count = count
        self._kept_number = (number + 1) * count // chunks
        self._stays = np.asarray(self._kept_number != number * count // chunks)

    def keepable_tiles(self) -> int:
        """Tiles that could stay of each operand that is loaded again in a later pass."""
        if self._selection.partition_reductions or self._space.column_major:
            return 0
        again = [
            chip_dtype(self._context.type_of(item.stored_value).dtype)
            for item in self._selection.externals.values()
            if self._is_loaded_again(item)
        ]
        size = sum(map(self._tile_bytes, again))
        limit = int(min(self._room(), KEPT_SHARE * self._context.sbuf.largest()))
        spare = min(1, self._space.row_tiles - 1)
        return min(limit // size - spare, self._space.chunks - 1) if size else 0

    def _is_loaded_again(self, external: External) -> bool:
        return (
            external.form in ("full", "expand")
            and self._spread_of(external) is None
            and self._resident(external) is None
            and len(self._load_levels(external)) > 1
        )

    def _keeps_part(self, external: External) -> bool:
        return bool(self._kept_count) and self._is_loaded_again(external)

    def _kept_part(self, dtype: DType) -> Slot:
        """The tiles that stay, and one into which the next row's first can be loaded."""
        rows, spare = self._rows * self._kept_count, min(1, self._space.row_tiles - 1)
        number = rows + np.maximum(self._kept_number - 1, 0)
        return self._loop.slot(
            "kept operand", self._tile_bytes(dtype), dtype, version=number,
            least_buffers=self._kept_count + spare,
        )  # fmt: skip

    def _variants(
        self, reads: tuple[Slot, ...], active: Bools | None
    ) -> list[tuple[tuple[Slot, ...], Bools | None]]:
        """What an instruction reads, and where: tiles that stay lie elsewhere than those that do not."""
        if self._parts_kept.keys().isdisjoint(reads):
            return [(reads, active)]
        kept = tuple(self._parts_kept.get(slot, slot) for slot in reads)
        live = np.ones(self._space.iterations, bool) if active is None else active
        return [(reads, live & ~self._stays), (kept, live & self._stays)]

    def _room(self) -> int:
        raise NotImplementedError

    def _load_levels(self, external: External) -> set[int]:
        levels = super()._load_levels(external)
        dtype = chip_dtype(self._context.type_of(external.stored_value).dtype)
        return {min(levels)} if self._is_kept(levels, dtype) else levels

    def _is_kept(self, levels: Collection[int], dtype: DType) -> bool:
        """Whether the chunks of an operand that several levels read stay in SBUF until the last has."""
        space = self._space
        if len(levels) == 1 or space.chunks == 1:
            return False
        wanted = self._kept_tiles * self._tile_bytes(dtype)
        operands = sum(item.form in ("full", "expand") for item in self._selection.externals.values())
        return wanted * operands <= KEPT_SHARE * self._context.sbuf.largest()

    def _kept(self, dtype: DType) -> Slot:
        """A tile for each chunk of a row, and one into which the next can be loaded."""
        return self._loop.slot(
            "operand",
            self._tile_bytes(dtype),
            dtype,
            version=self._tile_number,
            least_buffers=self._kept_tiles,
        )

    @property
    def _kept_tiles(self) -> int:
        return self._space.chunks + min(1, self._space.row_tiles - 1)

    def _repeated(self, external: External, repeated: Spread, dtype: DType) -> Slot:
        """Only the different elements of each partition, which access patterns repeat."""
        slot = self._loop.slot(
            "operand", repeated.count * dtype.byte_count, dtype, extra_buffers=1 + self._slack
        )
        run = min(repeated.count, external.view.run_elements)
        active = self._active(self._needed.get(external.key, {0}))
        self._load(external, slot, self._partitions * repeated.count, run, active)
        if repeated.repeats_innermost and repeated.count > 1:  # one element a partition is a scalar operand
            self._repeating.add(slot)
        return slot

    def _resident(self, external: External) -> Resident | None:
        """Where an operand is in SBUF already, if it lies there as this loop's tiles do."""
        space = self._space
        if external.form != "full" or not external.view.is_plain or not self._works_on_whole_rows:
            return None
        return self._context.residency.find(external.view.root, space.rows, space.columns)

    def _column(self, external: External, dtype: DType) -> None:
        space = self._space
        width = space.columns if not space.column_major else space.chunk
        stationary = width * dtype.byte_count <= self._context.core.sbuf_bytes_per_partition // 8
        if stationary and not space.column_major:
            slot = self._loop.slot("column", width * dtype.byte_count, dtype, stationary=True)
            active = np.arange(space.iterations) == 0
            elements: int | Ints = width
        else:
            version = space.chunk_number() if space.column_major else None
            slot = self._loop.slot(
                "column", space.chunk * dtype.byte_count, dtype, version=version, extra_buffers=1
            )
            active = self._loop.first_of(slot.version)
            elements = self._widths
        self._slots[external.key] = slot
        if external.form == "iota_column":
            self._iota(slot, elements, active)
            return
        partitions = int(self._partitions.max())
        count = np.broadcast_to(np.asarray(elements) * partitions, (space.iterations,))
        self._load(external, slot, count, int(np.max(elements)), active, partitions=partitions)

    def _row_vector(self, external: External, dtype: DType) -> Slot:
        space = self._space
        first = np.arange(space.iterations) == 0
        per_partition = 1 if external.form == "scalar" else space.row_tiles * space.rows_per_partition
        slot = self._loop.slot("row", per_partition * dtype.byte_count, dtype, stationary=True)
        if external.form == "iota_row":
            self._iota(slot, per_partition, first)
            return slot
        partitions = int(self._partitions.max())
        count = partitions if external.form == "scalar" else space.rows
        elements = np.full(space.iterations, count, np.int64)
        run = 1 if external.form == "scalar" else space.rows_per_partition
        self._load(external, slot, elements, run, first, partitions=partitions)
        return slot

    def _iota(self, slot: Slot, elements: int | Ints, active: Bools | None) -> None:
        self._loop.step(
            Engine.GPSIMD,
            Opcode.IOTA,
            writes=(slot,),
            partitions=self._partitions,
            elements=elements,
            active=active,
        )

    def _full_run(self, external: External) -> int:
        run = self._space.run_elements()
        if external.form == "expand":
            inner = external.view.blocks[-1].extent if external.view.blocks else 1
            run = min(run, inner)
        return max(1, min(run, external.view.run_elements))

    def _queue_of(self, slot: Slot, location: Location) -> int:
        """What is loaded once goes behind the first tiles of an operand, on its ring, and not beside them.

        Unless it can be loaded ahead and the tiles cannot.
        """
        same = location.waits_for_room_only == self._tiles_run_ahead
        if slot.stationary and self._tile_queue >= 0 and same:
            return self._tile_queue
        queue = self._context.load_queue(location)
        if not slot.stationary and self._tile_queue < 0:
            self._tile_queue, self._tiles_run_ahead = queue, location.waits_for_room_only
        return queue

    def _load(
        self, external: External, slot: Slot, elements: Ints, run: int, active: Bools | None,
        *, partitions: int | None = None,
    ) -> None:  # fmt: skip
        location = self._context.location(external.view.root if external.view.root >= 0 else external.value)
        item = location.dtype.byte_count
        slot.tensor = location.tensor
        transfer = Transfer(
            self._queue_of(slot, location), Memory.HBM, Memory.SBUF, elements * item, run * item,
            self._partitions if partitions is None else partitions,
            location.purpose, location.dtype, location.tensor,
            strided=not slot.stationary and (self._jumps or not external.view.is_plain),
        )  # fmt: skip
        self._loop.load(slot, transfer, active=active, after=location.tokens)
