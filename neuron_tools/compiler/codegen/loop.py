"""Code generation for loop groups: elementwise chains, row reductions, reductions over rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Bools
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import (
    AS_ACTIVATION,
    assign_engines,
    busiest_ns,
    chain_ns,
    composes_scalars,
    joins_scalar,
    quickest_engines,
)
from neuron_tools.compiler.codegen.level_joins import join_within_levels
from neuron_tools.compiler.codegen.loop_operands import LoopOperands
from neuron_tools.compiler.codegen.loop_space import group_space, images_on_partitions
from neuron_tools.compiler.codegen.micro import Key, Micro, Selection, reduction_kind
from neuron_tools.compiler.codegen.residency import make_room, may_stay, note_uses, settle
from neuron_tools.compiler.codegen.row_parts import RowParts
from neuron_tools.compiler.codegen.row_sums import ACCUMULATOR_BANKS, RowSums
from neuron_tools.compiler.codegen.selection import select
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.space import TARGET_ITERATIONS, Space
from neuron_tools.compiler.codegen.tables import IDENTITY, SQUARE, load_tables
from neuron_tools.compiler.codegen.turned_moments import (
    TurnedMoments,
    TurnedRows,
    find_turned_rows,
    turned_load,
)
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.opcodes import ROTATION
from neuron_tools.compiler.passes.groups import Domain, Group, Shape
from neuron_tools.records.program import DType, Engine, Flag, Opcode
from neuron_tools.simulator.dma_costs import stretch_time_ns

LEAST_TURNED_GAIN = 0.95
"""Rows' statistics move to the Tensor engine where a tile then takes at most this part of its time."""
FEW_TILES = 2
"""With no more tiles than this the engines work one after the other: each instruction should end soon."""
SHORT_CHUNK = 512
"""Elements of a row; shorter pieces are no longer worth what leaving other results in SBUF saves."""
SHORTEST_CHUNK = 32
"""Columns of the smallest tile. It is used even where it does not fit: others have to make room."""
LEAST_ROWS_TOGETHER = 2
"""Of short rows that share a partition: with a single one, numbers of rows would be scalars."""
LONGEST_CHUNK = 2048
"""Elements of a row that is cut up: the engines begin early and end late by a tile's time each."""
LONG_ROW = 8192
"""Elements of a row from which on a single pass over it is worth several tiles."""
ENGINE_PHASES = 8
"""Tiles in turn over which work that no single engine has room for is spread."""


def generate_loop(context: Context, group: Group) -> None:
    """Emit a loop group: loads, instructions and stores of all its tiles."""
    hlo = context.hlo(group, weights=work_of(context, group))
    for output in group.outputs:
        context.define(output)
    selection, space = _quickest(context, group, hlo)
    whole = max(
        [int(op.attributes["columns"]) for op in group.operations if op.opcode == ROTATION], default=1
    )
    choices = _tile_choices(space, whole)
    for tiled in choices:
        body = _Body(context, group, selection, tiled, hlo)
        body.build()
        while not body.fits() and _needs_room(tiled) and _make_room_beside(context, group):
            body = _Body(context, group, selection, tiled, hlo)
            body.build()
        if body.fits() or tiled is choices[-1]:
            _with_kept_tiles(body, context, group, selection, hlo).emit()
            return


def _quickest(context: Context, group: Group, hlo: int) -> tuple[Selection, Space]:
    """The instructions and the space of the way to lay a group out that takes the least time."""
    space = group_space(context, group)
    item_bytes = _result_dtype(context, group).byte_count
    spaces = dict.fromkeys((space, images_on_partitions(group, space, item_bytes)))
    ways = [
        _laid_out(context, group, each, row_scalars=row_scalars)
        for each in spaces
        for row_scalars in ((True, False) if each.rows_per_partition > 1 else (True,))
    ]
    if len(ways) == 1:
        return ways[0]
    return min(ways, key=lambda way: _Body(context, group, way[0], way[1], hlo).estimate_ns())


def _laid_out(
    context: Context, group: Group, space: Space, *, row_scalars: bool
) -> tuple[Selection, Space]:  # fmt: skip
    """A group's instructions where its iteration space lies as given, and that space cut into tiles."""
    selection = select(
        group, context.module, context.plan.views, _domain_of(group, space), row_scalars=row_scalars,
        joins_scalar=joins_scalar(context.core, space.chunk, _result_dtype(context, group)),
        composes_scalars=composes_scalars(context.core, space.columns),
    )  # fmt: skip
    narrow = all(chip_dtype(context.type_of(value).dtype).byte_count <= 2 for value in group.shapes)
    if selection.partition_reductions and selection.levels == 1 and narrow:
        sums = ACCUMULATOR_BANKS // len(selection.partition_reductions)
        widest = min(space.chunk, max(1, sums) * context.core.psum_bank_bytes // 4)
        space = space.with_chunk(-(-space.columns // -(-space.columns // widest)))
    space = replace(
        space,
        levels=selection.levels,
        column_major=bool(selection.partition_reductions)
        and selection.levels == 1
        and space.chunk < space.columns,
    )
    if selection.levels > 1 or _sums_long_rows(selection, space):
        space = _few_long_rows(group, space)
    if space.passes > space.chunks:
        join_within_levels(selection)
    return selection, space


def _needs_room(tiled: Space) -> bool:
    """Whether smaller tiles cost more than reloading what others left in SBUF.

    Whole rows are loaded once for all passes over them; short pieces of rows are slow to move.
    """
    if tiled.chunk < tiled.columns:
        return tiled.chunk < 2 * SHORT_CHUNK
    is_short = tiled.columns < 2 * SHORT_CHUNK and tiled.rows_per_partition <= LEAST_ROWS_TOGETHER
    return is_short or (tiled.levels > 1 and tiled.rows_per_partition == 1)


def _make_room_beside(context: Context, group: Group) -> bool:
    """Spill what stays in SBUF and this group does not read, then the rest; whether there was anything."""
    views = context.plan.views
    read = {value for operation in group.operations for value in operands_of(operation)}
    return make_room(context, {views.of(value).root for value in read}) or make_room(context)


def _with_kept_tiles(
    body: _Body, context: Context, group: Group, selection: Selection, hlo: int
) -> _Body:  # fmt: skip
    """The same loop with as many tiles of operands that it reads again kept as there is room for."""
    count = body.keepable_tiles()
    if count < 1:
        return body
    keeping = _Body(context, group, selection, body.space, hlo)
    keeping.keep(count)
    keeping.build()
    return keeping if keeping.fits() else body


def _sums_long_rows(selection: Selection, space: Space) -> bool:
    """Whether rows are reduced in one pass, as for a bias, and long enough to be cut up for it."""
    reduces = any(micro.reduces is not None for micro in selection.micros)
    return reduces and space.columns >= LONG_ROW


def _few_long_rows(group: Group, space: Space) -> Space:
    """Rows that fill one or two tiles, and lie in pieces, laid so that all partitions and engines work.

    Where two or more have room for each row, they share it; chunks let loads, reductions and stores overlap.
    Rows in one piece are left whole where something is made of each of their elements, as that may stay in
    SBUF for whoever reads it next.
    """
    is_whole = space.run == space.columns
    if is_whole and (space.columns < LONG_ROW or _keeps_rows(group)):
        return space
    if space.row_tiles > FEW_TILES or space.chunk < space.columns:
        return space
    pieces = space.columns if is_whole else space.columns // space.run
    reductions = [op for op in group.operations if op.opcode == "reduce"]
    if all(reduction_kind(operation) == "add" for operation in reductions) and space.segment == space.rows:
        parts = next(
            (count for count in range(space.partitions // space.rows, 1, -1) if pieces % count == 0), 1
        )
        space = space.in_row_parts(parts)
    chunk = min(LONGEST_CHUNK, -(-space.columns // TARGET_ITERATIONS))
    if chunk < space.run:
        return space.with_chunk(-(-space.run // -(-space.run // chunk)))
    return space.with_chunk(-(-chunk // space.run) * space.run)


def _keeps_rows(group: Group) -> bool:
    return any(group.shapes[value] is Shape.FULL for value in group.outputs)


def _result_dtype(context: Context, group: Group) -> DType:
    """The widest type among a group's results, of whole tiles if it makes any: other tiles take it on."""
    values = group.outputs if context.options.narrow_intermediates else list(group.shapes)
    whole = [value for value in values if group.shapes[value] is Shape.FULL]
    results = [chip_dtype(context.type_of(value).dtype) for value in whole or values]
    return max(results, key=lambda dtype: dtype.byte_count, default=DType.F32)


def work_of(context: Context, group: Group) -> list[float]:
    """Work per operation: elements computed; movement that only renames counts little."""
    weights = []
    for operation in group.operations:
        values = (*operation.results, *operation.operands[:1])
        size = max((context.type_of(value).element_count for value in values), default=1)
        weights.append(float(size) if operation.opcode != "convert" else size / 4)
    return weights


def _domain_of(group: Group, space: Space) -> Domain:
    if group.domain is not None:
        return group.domain
    return Domain(1, space.rows, space.columns)


def _tile_choices(space: Space, whole: int) -> Sequence[Space]:
    """Tiles to try, largest first: fewer rows a partition, then pieces of multiples of `whole` columns."""
    chunk, choices = space.chunk, [space]
    while space.row_parts == 1 and space.rows_per_partition > LEAST_ROWS_TOGETHER and chunk == space.columns:
        fewer = max(LEAST_ROWS_TOGETHER, space.rows_per_partition // 2)
        choices.append(space := replace(space, rows_per_partition=fewer))
    while chunk > SHORTEST_CHUNK:
        choices.append(space.with_chunk(-(-chunk // whole) * whole))
        chunk = chunk // 2 if chunk <= 4096 else max(2048, chunk // 2)
    return [*choices, space.with_chunk(max(whole, min(space.chunk, SHORTEST_CHUNK)))]


class _Body(LoopOperands, RowSums, RowParts, TurnedMoments):
    """Declares the slots and steps of one group's loop."""

    def build(self) -> None:
        """Declare everything, in the order of the tile body."""
        self._staying = self._choose_staying()
        self._choose_products()
        engines = self._engines([*self._selection.micros, *self._additions(self._multiplied)])
        turned = self._turned_rows(engines)
        if turned is not None:
            replaced = (turned.statistics, turned.aggregate, turned.normalise)
            engines = self._engines([micro for micro in self._selection.micros if micro not in replaced])
        # Tiles in turn keep other engines busy: more of them in flight even that out.
        self._slack = 2 if any(len(set(chosen)) > 1 for chosen in engines) else 0
        functions = dict.fromkeys(micro.activation for micro in self._selection.micros if micro.activation)
        load_tables(self._context, self._loop, functions)
        for external in self._selection.externals.values():
            if turned is not None and external.key == turned.data:
                self._turned_operand(turned)
            else:
                self._external(external)
        chosen = iter(engines)
        for index, micro in enumerate(self._selection.micros):
            if turned is not None and micro is turned.statistics:
                self._turned_statistics(turned)
            elif turned is not None and micro is turned.normalise:
                self._turned_normalise(turned, self._result_slot(index, micro, ()))
            elif turned is None or micro is not turned.aggregate:
                self._micro(index, micro, next(chosen))
        self._finish_reductions([*self._unfinished])
        for key, result, kind in self._selection.partition_reductions:
            self._partition_reduction(key, result, kind)
        for value, key in self._selection.stored.items():
            self._store(value, key)

    @property
    def space(self) -> Space:
        """How the iteration space lies on the chip."""
        return self._space

    def fits(self) -> bool:
        """Whether the pipelined loop fits into what SBUF has free."""
        return self._room() >= 0

    def _room(self) -> int:
        """Bytes per partition that are left beside the pipelined loop."""
        return int(self._context.sbuf.largest() * 0.95) - self._loop.footprint()

    def emit(self) -> None:
        """Append the loop to the program."""
        self._loop.emit()
        for value, step in self._stores:
            self._context.complete(value, self._loop.completion(step))
        note_uses(self._loop, self._residents)
        for key, value in self._staying.items():
            places = np.arange(self._space.row_tiles)
            settle(self._context, value, self._loop, [(self._slots[key], places)])

    def _choose_staying(self) -> dict[Key, int]:
        """Results that stay in SBUF: made by an instruction of their own, whole rows at a time."""
        if not self._works_on_whole_rows:
            return {}
        made = {m.writes for m in self._selection.micros if m.shape is Shape.FULL and m.reduces != m.writes}
        staying: dict[Key, int] = {}
        taken = 0
        for value, key in self._selection.stored.items():
            size = self._space.row_tiles * self._tile_bytes(self._dtype(key))
            is_made = key in made and self._group.shapes[value] is Shape.FULL
            if is_made and may_stay(self._context, value, size, taken):
                staying[key] = value
                taken += size
        return staying

    # Engines and tables

    def _engines(self, micros: Sequence[Micro]) -> tuple[tuple[Engine, ...], ...]:
        space = self._space
        if space.row_tiles * space.chunks <= FEW_TILES:
            return quickest_engines(micros, self._costs, space.row_tiles)
        enough = space.row_tiles >= 2 * ENGINE_PHASES or self._level_tiles >= ENGINE_PHASES
        phases = ENGINE_PHASES if enough else 1
        return assign_engines(
            micros, self._costs, self._transfer_ns(), phases=phases, levels_of=self._levels_of
        )

    def estimate_ns(self) -> float:
        """Time of the loop: what is busiest, the DMA engines too, and one tile's way from HBM to HBM."""
        space, micros = self._space, self._selection.micros
        engines = self._engines(micros)
        busiest, chain = busiest_ns(micros, engines, self._costs), chain_ns(micros, engines, self._costs)
        tiles, moving = space.row_tiles * space.chunks, self._moving_ns()
        return max(tiles * busiest, moving) + chain + moving / tiles

    def _moving_ns(self) -> float:
        """Time of the DMA engines for what moves between HBM and SBUF, in the stretches in which it lies."""
        core, run = self._context.core, self._space.run_elements()
        total = 0.0
        for value, levels in self._full_values():
            item = self._context.location(value).dtype.byte_count
            stretch_ns = stretch_time_ns(core, run * item, strided=self._jumps)
            total += len(levels) * self._context.type_of(value).element_count / run * stretch_ns
        return total / core.dma_engines

    @property
    def _level_tiles(self) -> int:
        """Tiles of each pass over the columns, where passes are long enough to be times of their own.

        0 where there is but one pass, or short ones: the next rows' first then runs beside these rows' last.
        """
        space = self._space
        is_long = space.passes > space.chunks and space.chunks >= TARGET_ITERATIONS
        return space.row_tiles * space.chunks if is_long else 0

    def _transfer_ns(self) -> list[float]:
        """Time in which the bytes of a tile move, in each pass over the columns."""
        tile = int(self._tile_elements.max()) / (self._context.core.dma_bandwidth / 1e9)
        moved = [0.0] * (int(self._level.max()) + 1)
        for value, levels in self._full_values():
            for level in levels:
                moved[level] += tile * self._context.location(value).dtype.byte_count
        return moved if self._level_tiles else [sum(moved)]

    def _levels_of(self, micro: Micro) -> set[int]:
        """The passes over the columns in which an instruction runs."""
        if not self._level_tiles:
            return {0}
        if micro.shape is not Shape.FULL:
            return {min(micro.level, self._space.levels - 1)}
        alone = micro.reduces == micro.writes
        return {micro.level} if alone else self._needed.get(micro.writes, {micro.level})

    def _turned_rows(self, engines: Sequence[Sequence[Engine]]) -> TurnedRows | None:
        """Statistics for the Tensor engine, where the others would take longer than turned loads do."""
        core, selection = self._context.core, self._selection
        found = find_turned_rows(selection, self._space, core)
        if found is None or self._dtype(found.data).byte_count != DType.BF16.byte_count:
            return None
        usual = busiest_ns(selection.micros, engines, self._costs)
        replaced = (found.statistics, found.aggregate, found.normalise)
        rest = [micro for micro in selection.micros if micro not in replaced]
        load = turned_load(core, self._space.columns)
        busiest = busiest_ns(rest, self._engines(rest), self._costs, load)
        moved = sum(self._transfer_ns()) / core.dma_transpose_efficiency
        return found if max(busiest, moved) < LEAST_TURNED_GAIN * usual else None

    # Instructions

    def _micro(self, index: int, micro: Micro, engines: tuple[Engine, ...]) -> None:
        """One instruction of the body; tiles in turn may have it on different engines."""
        self._finish_reductions(micro.reads)
        reads = tuple(self._slots[key] for key in micro.reads if key in self._slots)
        writes = self._written(index, micro, reads)
        active = self._active(self._needed.get(micro.writes, {micro.level}))
        if micro.shape is not Shape.FULL:
            active = self._end_of_level(micro.level)
        elif micro.reduces == micro.writes:
            active = self._active({micro.level})
        phase = (self._tile_number if self._level_tiles else self._rows) % len(engines)
        for engine in dict.fromkeys(engines):
            turn = np.isin(phase, [place for place, chosen in enumerate(engines) if chosen is engine])
            if turn.any():
                live = active if turn.all() else turn if active is None else turn & active
                for slots, at in self._variants(reads, live):
                    self._instruction(micro, engine, slots, writes, at, in_turn=not turn.all())
        if micro.reduces is not None:
            self._unfinished[micro.reduces] = micro
        if micro.opcode is Opcode.BN_AGGREGATE:
            self._join_moments(micro)

    def _instruction(
        self, micro: Micro, engine: Engine, reads: tuple[Slot, ...], writes: tuple[Slot, ...],
        active: Bools | None, *, in_turn: bool = False,
    ) -> None:  # fmt: skip
        opcode, activation, flags = micro.opcode, micro.activation, micro.flags
        if not self._repeating.isdisjoint(reads):
            flags |= Flag.STRIDED
        if engine is Engine.SCALAR and opcode in AS_ACTIVATION:
            flags |= Flag.REDUCES if opcode is Opcode.TENSOR_REDUCE else Flag.NONE
            opcode, activation = Opcode.ACTIVATE, activation or IDENTITY
        elif engine is not Engine.SCALAR:
            activation = ""
        functions: tuple[str, ...] = (activation,)
        if engine is Engine.SCALAR and opcode is Opcode.BN_STATS:  # sum and sum of squares, a pass each
            opcode, flags, functions = Opcode.ACTIVATE, flags | Flag.REDUCES, (IDENTITY, SQUARE)
        count = self._costs.repeats(micro, engine)
        elements = self._elements // count if micro.shape is Shape.FULL else self._row_elements(micro)
        for number, function in enumerate(functions * count):
            self._loop.step(
                engine, opcode, reads=reads, writes=writes, partitions=self._partitions, elements=elements,
                activation=function, flags=flags, active=active, accumulates=number > 0, in_turn=in_turn,
                opens_stage=micro.shape is Shape.FULL or self._space.chunks == 1,
            )  # fmt: skip

    def _row_elements(self, micro: Micro) -> int:
        if micro.opcode is Opcode.BN_AGGREGATE:
            return 6 * self._statistics_count()
        return self._space.rows_per_partition

    def _statistics_count(self) -> int:
        """Groups of statistics per row: BN_STATS takes a PSUM bank's worth of columns at a time."""
        columns = self._context.core.psum_bank_bytes // 4
        return -(-self._space.columns // columns) * self._space.rows_per_partition

    def _written(self, index: int, micro: Micro, reads: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """Slots that an instruction writes: its result (in place where an operand dies) and its reduction."""
        written: list[Slot] = []
        if micro.reduces != micro.writes:
            written.append(self._result_slot(index, micro, reads))
        if micro.reduces is not None:
            written.append(self._partial_slot(micro))
        return tuple(written)

    def _result_slot(self, index: int, micro: Micro, reads: tuple[Slot, ...]) -> Slot:
        dtype = self._dtype(micro.writes)
        if micro.writes in self._staying:
            slot = self._loop.slot("resident", self._tile_bytes(dtype), dtype, keep=True, whole=True)
        elif micro.shape is Shape.ROW:
            count = 2 if micro.opcode is Opcode.BN_AGGREGATE else 1
            slot = self._row_slot(dtype, count)
        else:
            slot = self._reusable(index, micro, dtype) or self._loop.slot(
                "result", self._tile_bytes(dtype), dtype, extra_buffers=self._slack
            )
        self._slots[micro.writes] = slot
        return slot

    def _reusable(self, index: int, micro: Micro, dtype: DType) -> Slot | None:
        """The tile of an operand that is used for the last time and has the same size.

        Rows one after the other write another tile: each would wait for what the row before has written.
        """
        if micro.by_row and self._space.rows_per_partition > 1:
            return None
        for key in micro.reads:
            slot = self._slots.get(key)
            if slot is None or slot.name != "result" or self._last_use.get(key) != index:
                continue
            if slot.bytes_per_partition == self._tile_bytes(dtype):
                return slot
        return None

    def _partial_slot(self, micro: Micro) -> Slot:
        """Where a reduction goes: the row's result, or one partial result per chunk."""
        assert micro.reduces is not None
        dtype = self._dtype(micro.reduces)
        count = self._space.chunks
        if micro.opcode is Opcode.BN_STATS:
            count = 6 * self._statistics_count() // self._space.rows_per_partition
        slot = self._row_slot(dtype, count)
        self._slots[micro.reduces] = slot
        return slot

    def _finish_reductions(self, keys: Iterable[Key]) -> None:
        """Join what is about to be read, behind all instructions of the pass that makes it."""
        for key in keys:
            micro = self._unfinished.pop(key, None)
            if micro is not None:
                self._finish_reduction(micro)

    def _finish_reduction(self, micro: Micro) -> None:
        """Join the partial results of the chunks, and of the partitions that share a row."""
        if micro.opcode is Opcode.BN_STATS:
            return
        assert micro.reduces is not None
        if self._space.chunks > 1:
            self._join_chunks(micro, micro.reduces)
        self._join_sums(micro.reduces, micro.level + 1)

    def _join_chunks(self, micro: Micro, reduces: Key) -> None:
        partial = self._slots[reduces]
        result = self._slots[reduces] = self._row_slot(partial.dtype)
        self._loop.step(
            Engine.VECTOR,
            Opcode.TENSOR_REDUCE,
            reads=(partial,),
            writes=(result,),
            partitions=self._partitions,
            elements=self._space.chunks,
            active=self._end_of_level(micro.level + 1),
            opens_stage=self._space.chunks == 1,
        )

    def _store(self, value: int, key: Key) -> None:
        location = self._context.locations[value]
        if self._staying.get(key) == value and not self._context.residency.stays[value].elsewhere:
            return
        item = location.dtype.byte_count
        slot = self._slots[key]
        level = self._selection.level_of.get(key, 0)
        if self._group.shapes[value] is Shape.ROW:
            parts = self._space.row_parts
            rows, partitions = self._space.tile_row_counts() // parts, self._partitions // parts
            active = self._end_of_level(level)
            self._save(value, slot, rows * item, self._space.rows_per_partition * item, partitions, active)
            return
        run = self._space.run_elements() * item
        self._save(value, slot, self._tile_elements * item, run, self._partitions, self._active({level}))
