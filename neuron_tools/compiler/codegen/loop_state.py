"""What all parts of a loop group's body share: its space, tiles, element types and activity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import TileCosts
from neuron_tools.compiler.codegen.micro import External, Key, Micro, Selection, needed_levels, row_keys
from neuron_tools.compiler.codegen.narrowing import narrow_keys
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.slot import Slot, Step, Transfer
from neuron_tools.compiler.codegen.space import Space
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Group, Shape
from neuron_tools.compiler.views import Spread, spread
from neuron_tools.records.program import DType, Memory


class LoopState:
    """State of one group's loop while its slots and steps are declared."""

    def __init__(self, context: Context, group: Group, selection: Selection, space: Space, hlo: int) -> None:
        self._context = context
        self._group = group
        self._selection = selection
        self._space = space
        self._hlo = hlo
        self._loop = TileLoop(context, space.iterations, hlo)
        self._slots: dict[Key, Slot] = {}
        self._stores: list[tuple[int, Step]] = []
        self._slack = 0
        self._residents: list[tuple[Resident, Slot]] = []
        self._staying: dict[Key, int] = {}
        self._tile_queue = -1
        self._tiles_run_ahead = False
        self._repeating: set[Slot] = set()
        self._unfinished: dict[Key, Micro] = {}
        self._multiplied: set[int] = set()
        self._kept_count = 0
        self._parts_kept: dict[Slot, Slot] = {}
        self._stays = np.zeros(space.iterations, bool)
        self._kept_number = np.zeros(space.iterations, np.int64)
        self._needed = needed_levels(selection)
        self._rows = space.row_tile()
        self._level = space.level()
        self._widths = space.widths()
        self._partitions = space.partition_counts()
        self._elements = space.elements_per_partition()
        self._costs = TileCosts(
            context.core, int(self._elements.max()), self._widest, space.rows_per_partition
        )
        self._tile_elements = space.tile_elements()
        self._last_use = self._last_uses()
        self._row_keys = row_keys(selection)
        self._row_keys |= {key for key, item in selection.externals.items() if item.form == "scalar"}
        stored = {value: context.locations[value].dtype for value in selection.stored}
        loaded = {
            key: chip_dtype(context.type_of(item.stored_value).dtype)
            for key, item in selection.externals.items()
        }
        self._narrow: Mapping[Key, DType] = {}
        if context.options.narrow_intermediates:
            self._narrow = narrow_keys(selection, stored, loaded, self._row_keys)

    @property
    def _works_on_whole_rows(self) -> bool:
        space = self._space
        return (
            space.rows_per_partition == space.row_parts == 1
            and space.columns == space.run == space.chunk
            and (space.segment == space.rows)
        )

    @property
    def _jumps(self) -> bool:
        """Whether the rows of a tile lie apart in HBM; a space without rows is cut as it lies."""
        space = self._space
        return self._group.domain is not None and (space.chunk < space.columns or space.run < space.columns)

    def _spread_of(self, external: External) -> Spread | None:
        """What the partitions need of a repeated operand, where that is less than a tile each."""
        space = self._space
        stretch = int(self._elements.max())
        in_one_piece = space.run == space.columns and space.columns % space.chunk == 0
        if external.form != "expand" or not in_one_piece or stretch == 1:
            return None
        found = spread(external.view.blocks, stretch)
        return found if found is not None and found.count < stretch else None

    @property
    def _tile_number(self) -> Ints:
        """(iterations,) number of the tile, the same in each pass over the columns."""
        return self._rows * self._space.chunks + self._space.chunk_number()

    def _full_values(self) -> list[tuple[int, set[int]]]:
        """Values that move between HBM and SBUF tile by tile, and the passes in which they do."""
        residency = self._context.residency
        loaded = [
            (item.stored_value, self._load_levels(item))
            for item in self._selection.externals.values()
            if item.form in ("full", "expand")
            and item.view.root >= 0
            and self._spread_of(item) is None
            and residency.find(item.view.root, self._space.rows, self._space.columns) is None
        ]
        kept = {value for value in self._staying.values() if not residency.stays[value].elsewhere}
        stored = [
            (value, self._walked({self._selection.level_of.get(key, 0)}))
            for value, key in self._selection.stored.items()
            if self._group.shapes[value] is Shape.FULL and value not in kept
        ]
        return loaded + stored

    def _load_levels(self, external: External) -> set[int]:
        """The passes in which an operand is loaded."""
        return self._walked(self._needed.get(external.key, {0}))

    def _walked(self, levels: set[int]) -> set[int]:
        """Levels as passes over the columns: all of them in one pass where a tile holds whole rows."""
        return levels if self._space.passes > self._space.chunks else {0}

    def _last_uses(self) -> dict[Key, int]:
        last: dict[Key, int] = {}
        for index, micro in enumerate(self._selection.micros):
            last.update(dict.fromkeys(micro.reads, index))
        end = len(self._selection.micros)
        for key in self._selection.stored.values():
            last[key] = end
        for key, _, _ in self._selection.partition_reductions:
            last[key] = end
        return last

    def _active(self, levels: Iterable[int]) -> Bools | None:
        """(iterations,) where a step that serves these levels runs; None = everywhere."""
        if self._space.passes == 1 or self._space.levels == 1:
            return None
        return np.asarray(np.isin(self._level, list(levels)))

    def _end_of_level(self, level: int) -> Bools | None:
        """(iterations,) where what needs `level` reductions can be computed: after their last chunk."""
        if self._space.chunks == 1:
            return None
        position = self._space.pass_number()
        return np.asarray(position == (level * self._space.chunks - 1 if level > 0 else 0))

    def _row_slot(self, dtype: DType, count: int = 1) -> Slot:
        size = self._space.rows_per_partition * count * dtype.byte_count
        version = None if self._space.chunks == 1 else self._rows
        return self._loop.slot("row result", size, dtype, version=version)

    def _tile_bytes(self, dtype: DType) -> int:
        return int(self._elements.max()) * dtype.byte_count

    def _dtype(self, key: Key) -> DType:
        if key in self._narrow:
            return self._narrow[key]
        value = self._selection.value_of.get(key)
        external = self._selection.externals.get(key)
        if external is not None:
            value = external.stored_value
        return chip_dtype(self._context.type_of(value).dtype) if value is not None else DType.F32

    def _widest(self, micro: Micro) -> DType:
        """The widest element type that an instruction reads or writes: it decides the speed."""
        keys = [*micro.reads, micro.writes, *([] if micro.reduces is None else [micro.reduces])]
        wide = [self._dtype(key) for key in keys if key not in self._row_keys or key in (micro.reduces,)]
        return max(wide or [DType.F32], key=lambda dtype: dtype.byte_count)

    def _save(
        self, value: int, slot: Slot, size: Ints, descriptor_bytes: int, partitions: int | Ints,
        active: Bools | None,
    ) -> None:  # fmt: skip
        location = self._context.locations[value]
        transfer = Transfer(
            self._context.store_queue(), Memory.SBUF, Memory.HBM, size, descriptor_bytes, partitions,
            location.store_purpose, location.dtype, location.tensor,
            strided=self._jumps and slot.bytes_per_partition > location.dtype.byte_count,
        )  # fmt: skip
        self._stores.append((value, self._loop.store(slot, transfer, active=active)))
