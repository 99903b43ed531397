"""Code generation for loop groups: elementwise chains, row reductions, reductions over rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import assign_engines
from neuron_tools.compiler.codegen.micro import External, Key, Micro, Selection, needed_levels
from neuron_tools.compiler.codegen.narrowing import narrow_keys
from neuron_tools.compiler.codegen.selection import select
from neuron_tools.compiler.codegen.slot import Slot, Step, Transfer
from neuron_tools.compiler.codegen.space import Space, flat_space, row_space
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Domain, Group, Shape, reduction_domain
from neuron_tools.simulator.program import DType, Engine, Flag, Memory, Opcode

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ACCUMULATOR_BANKS = 6
"""PSUM banks that reductions over rows may hold for a whole loop; two stay free for others."""
FEW_ROW_TILES = 8
"""With no more row tiles than this, sums over rows are matmuls with ones in any type."""
ENGINE_PHASES = 8
"""Tiles in turn over which work that no single engine has room for is spread."""
_IDENTITY = "identity"
_PER_ROW = ("row", "scalar", "iota_row")


def generate_loop(context: Context, group: Group) -> None:
    """Emit a loop group: loads, instructions and stores of all its tiles."""
    space = group_space(context, group)
    domain = _domain_of(group, space)
    selection = select(
        group, context.module, context.plan.views, domain, rows_per_partition=space.rows_per_partition
    )
    narrow = all(chip_dtype(context.type_of(value).dtype).byte_count <= 2 for value in group.shapes)
    if selection.partition_reductions and selection.levels == 1 and narrow:
        sums = ACCUMULATOR_BANKS // len(selection.partition_reductions)
        space = space.with_chunk(min(space.chunk, max(1, sums) * context.core.psum_bank_bytes // 4))
    space = replace(
        space,
        levels=selection.levels,
        column_major=bool(selection.partition_reductions)
        and selection.levels == 1
        and space.chunk < space.columns,
    )
    hlo = context.hlo(group, weights=work_of(context, group))
    for output in group.outputs:
        context.define(output)
    for chunk in _chunk_choices(space):
        body = _Body(context, group, selection, space.with_chunk(chunk), hlo)
        body.build()
        if body.fits() or chunk <= 32:
            body.emit()
            return


def work_of(context: Context, group: Group) -> list[float]:
    """Work per operation: elements computed; movement that only renames counts little."""
    weights = []
    for operation in group.operations:
        values = (*operation.results, *operation.operands[:1])
        size = max((context.type_of(value).element_count for value in values), default=1)
        weights.append(float(size) if operation.opcode != "convert" else size / 4)
    return weights


def group_space(context: Context, group: Group) -> Space:
    """The space of a loop group and how it lies on the chip."""
    item_bytes = max(
        (chip_dtype(context.type_of(value).dtype).byte_count for value in group.shapes), default=4
    )
    partitions = context.core.sbuf_partitions
    reductions = [op for op in group.operations if op.opcode in ("reduce", "moments")]
    if group.domain is None:
        return flat_space(max(1, group.element_count), item_bytes, partitions)
    reduces_rows = any(group.shapes[op.results[0]] is Shape.ROW for op in reductions)
    segment = min([group.domain.rows, *(_segment(context, group, op) for op in reductions)])
    return row_space(
        group.domain, item_bytes, segment=segment, reduces_rows=reduces_rows, partitions=partitions
    )


def _segment(context: Context, group: Group, operation: Operation) -> int:
    """Rows over which a reduction over rows runs; all rows for other reductions."""
    assert group.domain is not None
    form = reduction_domain(operation, context.module)
    results = context.type_of(operation.results[0]).element_count
    if form is None or form[1] is not Shape.LATE or form[0] is None or results < group.domain.columns:
        return group.domain.rows
    return max(1, group.domain.rows // max(1, results // group.domain.columns))


def _domain_of(group: Group, space: Space) -> Domain:
    if group.domain is not None:
        return group.domain
    return Domain(1, space.rows, space.columns)


def _chunk_choices(space: Space) -> Iterable[int]:
    chunk = space.chunk
    while chunk > 32:
        yield chunk
        chunk = chunk // 2 if chunk <= 4096 else max(2048, chunk // 2)
    yield min(space.chunk, 32)


class _Body:
    """Declares the slots and steps of one group's loop."""

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
        self._needed = needed_levels(selection)
        self._rows = space.row_tile()
        self._level = space.level()
        self._widths = space.widths()
        self._partitions = space.partition_counts()
        self._elements = space.elements_per_partition()
        self._tile_elements = space.tile_elements()
        self._last_use = self._last_uses()
        self._row_keys = {micro.writes for micro in selection.micros if micro.shape is Shape.ROW}
        self._row_keys |= {micro.reduces for micro in selection.micros if micro.reduces is not None}
        self._row_keys |= {key for key, item in selection.externals.items() if item.form in _PER_ROW}
        stored = {value: context.locations[value].dtype for value in selection.stored}
        loaded = {
            key: chip_dtype(context.type_of(item.stored_value).dtype)
            for key, item in selection.externals.items()
        }
        self._narrow: Mapping[Key, DType] = {}
        if context.options.narrow_intermediates:
            self._narrow = narrow_keys(selection, stored, loaded, self._row_keys)

    def build(self) -> None:
        """Declare everything, in the order of the tile body."""
        engines = self._engines()
        # Tiles in turn keep other engines busy: more of them in flight even that out.
        self._slack = 2 if any(len(set(chosen)) > 1 for chosen in engines) else 0
        functions = dict.fromkeys(micro.activation for micro in self._selection.micros if micro.activation)
        load_tables(self._context, self._loop, functions)
        for external in self._selection.externals.values():
            self._external(external)
        for index, (micro, chosen) in enumerate(zip(self._selection.micros, engines)):
            self._micro(index, micro, chosen)
        for key, result, kind in self._selection.partition_reductions:
            self._partition_reduction(key, result, kind)
        for value, key in self._selection.stored.items():
            self._store(value, key)

    def fits(self) -> bool:
        """Whether the pipelined loop fits into what SBUF has free."""
        return self._loop.footprint() <= int(self._context.sbuf.largest() * 0.95)

    def emit(self) -> None:
        """Append the loop to the program."""
        self._loop.emit()
        for value, step in self._stores:
            self._context.complete(value, self._loop.completion(step))

    # Engines and tables

    def _engines(self) -> tuple[tuple[Engine, ...], ...]:
        moved = sum(
            int(self._tile_elements.max()) * self._context.location(value).dtype.byte_count
            for value in self._full_values()
        )
        bandwidth = self._context.core.dma_bandwidth / 1e9
        return assign_engines(
            self._selection.micros,
            self._context.core,
            int(self._elements.max()),
            moved / bandwidth,
            self._widest,
            phases=ENGINE_PHASES if self._space.row_tiles >= 2 * ENGINE_PHASES else 1,
        )

    def _widest(self, micro: Micro) -> DType:
        """The widest element type that an instruction reads or writes: it decides the speed."""
        keys = [*micro.reads, micro.writes, *([] if micro.reduces is None else [micro.reduces])]
        wide = [self._dtype(key) for key in keys if key not in self._row_keys or key in (micro.reduces,)]
        return max(wide or [DType.F32], key=lambda dtype: dtype.byte_count)

    def _full_values(self) -> list[int]:
        loaded = [
            item.stored_value
            for item in self._selection.externals.values()
            if item.form in ("full", "expand") and item.view.root >= 0
        ]
        stored = [v for v in self._selection.stored if self._group.shapes[v] is Shape.FULL]
        return loaded + stored

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

    # Activity

    def _active(self, levels: Iterable[int]) -> BoolArray | None:
        """(iterations,) where a step that serves these levels runs; None = everywhere."""
        if self._space.passes == 1 or self._space.levels == 1:
            return None
        return np.asarray(np.isin(self._level, list(levels)))

    def _end_of_level(self, level: int) -> BoolArray | None:
        """(iterations,) where what needs `level` reductions can be computed: after their last chunk."""
        if self._space.chunks == 1:
            return None
        position = self._space.pass_number()
        return np.asarray(position == (level * self._space.chunks - 1 if level > 0 else 0))

    # Operands

    def _external(self, external: External) -> None:
        form = external.form
        dtype = chip_dtype(self._context.type_of(external.stored_value).dtype)
        if form in ("full", "expand", "iota_full"):
            slot = self._loop.slot("operand", self._tile_bytes(dtype), dtype, extra_buffers=1 + self._slack)
            active = self._active(self._needed.get(external.key, {0}))
            if form == "iota_full":
                self._iota(slot, self._elements, active)
            else:
                self._load(external, slot, self._tile_elements, self._full_run(external), active)
        elif form in ("column", "iota_column"):
            self._column(external, dtype)
            return
        else:
            slot = self._row_vector(external, dtype)
        self._slots[external.key] = slot

    def _column(self, external: External, dtype: DType) -> None:
        space = self._space
        width = space.columns if not space.column_major else space.chunk
        stationary = width * dtype.byte_count <= self._context.core.sbuf_bytes_per_partition // 8
        if stationary and not space.column_major:
            slot = self._loop.slot("column", width * dtype.byte_count, dtype, stationary=True)
            active = np.arange(space.iterations) == 0
            elements: int | IntArray = width
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

    def _iota(self, slot: Slot, elements: int | IntArray, active: BoolArray | None) -> None:
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

    def _load(
        self, external: External, slot: Slot, elements: IntArray, run: int, active: BoolArray | None,
        *, partitions: int | None = None,
    ) -> None:  # fmt: skip
        location = self._context.location(external.view.root if external.view.root >= 0 else external.value)
        item = location.dtype.byte_count
        slot.tensor = location.tensor
        transfer = Transfer(
            self._context.load_queue(), Memory.HBM, Memory.SBUF, elements * item, run * item,
            self._partitions if partitions is None else partitions,
            location.purpose, location.dtype, location.tensor,
        )  # fmt: skip
        self._loop.load(slot, transfer, active=active, after=location.tokens)

    # Instructions

    def _tile_bytes(self, dtype: DType) -> int:
        return int(self._elements.max()) * dtype.byte_count

    def _micro(self, index: int, micro: Micro, engines: tuple[Engine, ...]) -> None:
        """One instruction of the body; tiles in turn may have it on different engines."""
        reads = tuple(self._slots[key] for key in micro.reads if key in self._slots)
        writes = self._written(index, micro, reads)
        active = self._active(self._needed.get(micro.writes, {micro.level}))
        if micro.shape is not Shape.FULL:
            active = self._end_of_level(micro.level)
        elif micro.reduces == micro.writes:
            active = self._active({micro.level})
        phase = self._rows % len(engines)
        for engine in dict.fromkeys(engines):
            turn = np.isin(phase, [place for place, chosen in enumerate(engines) if chosen is engine])
            if turn.all():
                self._instruction(micro, engine, reads, writes, active)
            elif turn.any():
                live = turn if active is None else turn & active
                self._instruction(micro, engine, reads, writes, live, in_turn=True)
        if micro.reduces is not None:
            self._finish_reduction(micro)

    def _instruction(
        self, micro: Micro, engine: Engine, reads: tuple[Slot, ...], writes: tuple[Slot, ...],
        active: BoolArray | None, *, in_turn: bool = False,
    ) -> None:  # fmt: skip
        opcode, activation, flags = micro.opcode, micro.activation, micro.flags
        if engine is Engine.SCALAR and opcode in (
            Opcode.TENSOR_SCALAR,
            Opcode.TENSOR_REDUCE,
            Opcode.TENSOR_COPY,
        ):
            flags |= Flag.REDUCES if opcode is Opcode.TENSOR_REDUCE else Flag.NONE
            opcode, activation = Opcode.ACTIVATE, _IDENTITY
        if engine is Engine.SCALAR and opcode is Opcode.BN_STATS:
            self._statistics(reads, writes, active, in_turn=in_turn)
            return
        self._loop.step(
            engine, opcode, reads=reads, writes=writes, partitions=self._partitions,
            elements=self._elements if micro.shape is Shape.FULL else self._row_elements(micro),
            activation=activation, flags=flags, active=active, accumulates=False, in_turn=in_turn,
        )  # fmt: skip

    def _statistics(
        self, reads: tuple[Slot, ...], writes: tuple[Slot, ...], active: BoolArray | None, *, in_turn: bool
    ) -> None:
        """Sum and sum of squares by two accumulating passes of the Scalar engine."""
        for function in (_IDENTITY, "square"):
            self._loop.step(
                Engine.SCALAR, Opcode.ACTIVATE, reads=reads, writes=writes, activation=function,
                partitions=self._partitions, elements=self._elements, flags=Flag.REDUCES,
                active=active, accumulates=function != _IDENTITY, in_turn=in_turn,
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
        if micro.shape is Shape.ROW:
            count = 2 if micro.opcode is Opcode.BN_AGGREGATE else 1
            slot = self._row_slot(dtype, count)
        else:
            slot = self._reusable(index, micro, dtype) or self._loop.slot(
                "result", self._tile_bytes(dtype), dtype, extra_buffers=self._slack
            )
        self._slots[micro.writes] = slot
        return slot

    def _reusable(self, index: int, micro: Micro, dtype: DType) -> Slot | None:
        """The tile of an operand that is used for the last time and has the same size."""
        for key in micro.reads:
            slot = self._slots.get(key)
            if slot is None or slot.name != "result" or self._last_use.get(key) != index:
                continue
            if slot.bytes_per_partition == self._tile_bytes(dtype):
                return slot
        return None

    def _row_slot(self, dtype: DType, count: int = 1) -> Slot:
        size = self._space.rows_per_partition * count * dtype.byte_count
        version = None if self._space.chunks == 1 else self._rows
        return self._loop.slot("row result", size, dtype, version=version)

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

    def _finish_reduction(self, micro: Micro) -> None:
        """Join the partial results of the chunks."""
        if self._space.chunks == 1 or micro.opcode is Opcode.BN_STATS:
            return
        assert micro.reduces is not None
        partial = self._slots[micro.reduces]
        result = self._row_slot(partial.dtype)
        self._slots[micro.reduces] = result
        self._loop.step(
            Engine.VECTOR,
            Opcode.TENSOR_REDUCE,
            reads=(partial,),
            writes=(result,),
            partitions=self._partitions,
            elements=self._space.chunks,
            active=self._end_of_level(micro.level + 1),
        )

    def _dtype(self, key: Key) -> DType:
        if key in self._narrow:
            return self._narrow[key]
        value = self._selection.value_of.get(key)
        external = self._selection.externals.get(key)
        if external is not None:
            value = external.stored_value
        return chip_dtype(self._context.type_of(value).dtype) if value is not None else DType.F32

    # Reductions over rows

    def _partition_reduction(self, key: Key, result: int, kind: str) -> None:
        """Sum over partitions by a matmul with ones; other combinations on GpSimd at the end."""
        if result not in self._context.locations:
            return
        source = self._slots[key]
        level = self._selection.level_of.get(key, 0)
        active = self._active({level})
        is_scalar = self._context.type_of(result).element_count == 1
        version, last = self._reduction_versions(is_scalar)
        width: int | IntArray = 1 if is_scalar else self._widths
        source, active = self._folded_rows(source, is_scalar, active)
        # fp32 products take four passes: with many tiles the Vector engine adds them up sooner
        is_quick = source.dtype.byte_count <= 2 or is_scalar or self._space.row_tiles <= FEW_ROW_TILES
        if kind == "add" and is_quick and self._banks(is_scalar) <= ACCUMULATOR_BANKS:
            final = self._sum_by_matmul(source, version, width, active, last)
        else:
            final = self._accumulate(source, version, width, active, last)
        self._store_late(result, final, width, last)

    def _reduction_versions(self, is_scalar: bool) -> tuple[IntArray, BoolArray]:
        """(result that each iteration adds to, whether it is the last to add to it)."""
        space = self._space
        segments = self._rows // space.tiles_per_segment
        if is_scalar:
            version = np.zeros(space.iterations, np.int64)
        elif space.column_major:
            version = space.chunk_number() * (space.rows // space.segment) + segments
        else:
            version = segments
        last = np.diff(version, append=-1) != 0
        return version, last

    def _folded_rows(
        self, source: Slot, is_scalar: bool, active: BoolArray | None
    ) -> tuple[Slot, BoolArray | None]:
        """Several rows of a partition (or all its columns, for a scalar) reduced to one row first."""
        if self._space.rows_per_partition == 1 and not is_scalar:
            return source, active
        size = 4 if is_scalar else 4 * self._space.chunk
        folded = self._loop.slot("folded", size, DType.F32)
        self._loop.step(
            Engine.VECTOR,
            Opcode.TENSOR_REDUCE,
            reads=(source,),
            writes=(folded,),
            partitions=self._partitions,
            elements=self._elements,
            active=active,
            flags=Flag.NONE if is_scalar else Flag.STRIDED,
        )
        return folded, active

    def _banks(self, is_scalar: bool) -> int:
        space = self._space
        if is_scalar:
            return 1
        if space.chunks > 1 and not space.column_major:
            return ACCUMULATOR_BANKS + 1
        held = -(-space.chunk // (self._context.core.psum_bank_bytes // 4))
        return held * max(1, len(self._selection.partition_reductions))

    def _sum_by_matmul(
        self,
        source: Slot,
        version: IntArray,
        width: int | IntArray,
        active: BoolArray | None,
        last: BoolArray,
    ) -> Slot:
        loop, core = self._loop, self._context.core
        bank = core.psum_bank_bytes // 4
        ones = loop.slot("ones", 2, source.dtype, stationary=True)
        first = np.arange(self._space.iterations) == 0
        loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(ones,), elements=1, active=first)
        total = loop.slot("total", self._late_columns(width) * 4, DType.F32, version=version)
        widths = np.broadcast_to(np.asarray(width), (self._space.iterations,))
        for start in range(0, int(widths.max()), bank):
            psum = loop.slot("sums", core.psum_bank_bytes, DType.F32, memory=Memory.PSUM, version=version)
            columns = np.clip(widths - start, 0, bank)
            live = columns > 0 if active is None else active & (columns > 0)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(ones,), partitions=self._partitions, columns=1,
                      active=live)  # fmt: skip
            loop.step(Engine.TENSOR, Opcode.MATMUL, reads=(source, ones), writes=(psum,), elements=columns,
                      partitions=self._partitions, columns=1, active=live, accumulates=True,
                      flags=Flag.ACCUMULATE)  # fmt: skip
            loop.step(Engine.SCALAR, Opcode.ACTIVATE, activation=_IDENTITY, reads=(psum,), writes=(total,),
                      partitions=1, elements=columns, active=last & (columns > 0))  # fmt: skip
        return total

    def _accumulate(
        self, source: Slot, version: IntArray, width: int | IntArray, active: BoolArray | None,
        last: BoolArray,
    ) -> Slot:  # fmt: skip
        """Elementwise over the row tiles on the Vector engine, across partitions once at the end."""
        loop = self._loop
        columns = self._late_columns(width)
        held = loop.slot("accumulator", columns * 4, DType.F32, version=version)
        first = np.diff(version, prepend=-1) != 0
        loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(held,), partitions=self._partitions, elements=width,
                  active=first)  # fmt: skip
        loop.step(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(source, held), writes=(held,), accumulates=True,
                  partitions=self._partitions, elements=width, active=active)  # fmt: skip
        total = loop.slot("total", columns * 4, DType.F32, version=version)
        elements = columns if self._space.chunks > 1 and not self._space.column_major else width
        loop.step(Engine.GPSIMD, Opcode.PARTITION_REDUCE, reads=(held,), writes=(total,), elements=elements,
                  partitions=int(self._partitions.max()), active=last)  # fmt: skip
        return total

    def _late_columns(self, width: int | IntArray) -> int:
        if isinstance(width, int):
            return width
        return self._space.chunk if self._space.column_major else self._space.columns

    def _store_late(self, result: int, final: Slot, width: int | IntArray, last: BoolArray) -> None:
        location = self._context.locations[result]
        whole = self._space.chunks > 1 and not self._space.column_major and not isinstance(width, int)
        elements = np.broadcast_to(
            np.asarray(self._space.columns if whole else width), (self._space.iterations,)
        )
        item = location.dtype.byte_count
        self._save(result, final, elements * item, int(elements.max()) * item, 1, last)

    # Stores

    def _store(self, value: int, key: Key) -> None:
        location = self._context.locations[value]
        item = location.dtype.byte_count
        slot = self._slots[key]
        level = self._selection.level_of.get(key, 0)
        if self._group.shapes[value] is Shape.ROW:
            rows = self._space.tile_row_counts()
            active = self._end_of_level(level)
            self._save(
                value, slot, rows * item, self._space.rows_per_partition * item, self._partitions, active
            )
            return
        run = self._space.run_elements() * item
        self._save(value, slot, self._tile_elements * item, run, self._partitions, self._active({level}))

    def _save(
        self, value: int, slot: Slot, size: IntArray, descriptor_bytes: int, partitions: int | IntArray,
        active: BoolArray | None,
    ) -> None:  # fmt: skip
        location = self._context.locations[value]
        transfer = Transfer(
            self._context.store_queue(), Memory.SBUF, Memory.HBM, size, descriptor_bytes, partitions,
            location.store_purpose, location.dtype, location.tensor,
        )  # fmt: skip
        self._stores.append((value, self._loop.store(slot, transfer, active=active)))


def load_tables(context: Context, loop: TileLoop, functions: Mapping[str, None]) -> None:
    """Load the activation tables that a loop needs and that are not loaded yet, before its first use."""
    missing = [name for name in functions if name != _IDENTITY and name not in context.loaded_tables]
    if not missing:
        return
    context.loaded_tables = tuple(name for name in functions if name != _IDENTITY)
    first = np.arange(loop.iterations) == 0
    for name in missing:
        loop.step(Engine.SCALAR, Opcode.ACT_TABLE_LOAD, activation=name, active=first)
