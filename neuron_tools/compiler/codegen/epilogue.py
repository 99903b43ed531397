"""From PSUM to HBM: evacuation of a matmul's result tiles with the elementwise operations fused to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.added_rows import AddedRow, take_added_row
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import AS_ACTIVATION, instruction_ns
from neuron_tools.compiler.codegen.micro import External, Key, Micro
from neuron_tools.compiler.codegen.residency import may_stay, note_uses, settle
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.row_order import RowOrder
from neuron_tools.compiler.codegen.selection import select
from neuron_tools.compiler.codegen.slot import Slot, Step, Transfer
from neuron_tools.compiler.codegen.tables import load_tables
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Domain, Group, Shape
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode


@dataclass(eq=False)
class Epilogue:
    """Emits, per result tile, the fused operations (or a plain copy) and the stores.

    Args:
        rows: Gives the (iterations,) rows of a row tile.
        place: Gives the (iterations,) number of a row tile in the whole result.
        row_count, columns: Size of the whole result, rows x columns.
        column_version: (iterations,) number of the block of columns an iteration works on.
        width: Columns of a block.
        last: (iterations,) where the sums are complete.
        order: How the rows and columns lie in a result.
        row_version: (iterations,) number of the block of rows; needed for results to stay that are made a few
            columns at a time.
    """

    context: Context
    group: Group
    loop: TileLoop
    _: KW_ONLY
    rows: Callable[[int], Ints]
    place: Callable[[int], Ints]
    row_count: int
    columns: int
    order: RowOrder | None
    column_version: Ints
    width: int
    last: Bools
    row_version: Ints | None = None
    adds_rows: bool = False

    def __post_init__(self) -> None:
        self._staying: dict[int, list[tuple[Slot, Ints]]] = {}
        self._residents: list[tuple[Resident, Slot]] = []
        self.width = min(self.width, self.columns)
        group, context = self.group, self.context
        domain = group.domain or Domain(1, self.row_count, self.columns)
        self._selection = select(group, context.module, context.plan.views, domain)
        self._product = group.operations[0].results[0]
        self.added_row: AddedRow | None = None
        if self.adds_rows:
            row_tiles = -(-self.row_count // context.core.tensor_columns)
            self._selection, self.added_row = take_added_row(
                context, self._selection, self._product, self.columns, row_tiles
            )
        micros = self._selection.micros
        first = next(
            (i for i, m in enumerate(micros) if m.reduces is not None or m.shape is Shape.ROW), len(micros)
        )
        self._per_tile, self._per_row = micros[:first], micros[first:]
        self._made_per_row = {key for micro in self._per_row for key in (micro.writes, micro.reduces)}
        self._stores: list[tuple[int, Step]] = []
        self._shared: dict[Key, Slot] = {}
        self._load: dict[Engine, float] = {}
        functions = dict.fromkeys(micro.activation for micro in self._selection.micros if micro.activation)
        load_tables(context, self.loop, functions)

    def emit(self, row_tile: int, sums: Sequence[Slot], widths: Sequence[Ints]) -> None:
        """Steps that turn one row tile's sums (one PSUM slot per tile of `widths` columns) into results."""
        rows = self.rows(row_tile)
        total = np.asarray(sum(widths))
        live = self.last & (rows > 0)
        operands = {
            key: self._resident(external, row_tile) or self._operand(external, rows, total, live)
            for key, external in self._selection.externals.items()
            if external.value != self._product
        }
        stored = self._selected_outputs()
        outputs = {value: self._output(value, row_tile) for value in stored}
        slots = {key: slot for key, slot in operands.items() if slot is not None}
        whole = self._whole_row_keys()
        slots.update({key: self._row_wide(key, outputs, stored) for key in whole})
        for psum, width in zip(sums, widths):
            self._tile(psum, width, rows, live & (width > 0), slots, outputs, stored)
        self._whole_rows(slots, outputs, stored, rows, total, live)
        residency = self.context.residency
        for value, slot in outputs.items():
            if value not in self._staying or residency.stays[value].elsewhere:
                self._store(value, slot, rows, total, live)

    def complete(self) -> None:
        """Tell the context when the results are complete; call after the loop is emitted."""
        for value, step in self._stores:
            self.context.complete(value, self.loop.completion(step))
        note_uses(self.loop, self._residents)
        for value, slots in self._staying.items():
            settle(self.context, value, self.loop, slots)

    def _selected_outputs(self) -> dict[int, Key]:
        return dict(self._selection.stored)

    def _resident(self, external: External, row_tile: int) -> Slot | None:
        """An operand that is in SBUF already, as rows of the result are."""
        if external.form != "full" or not external.view.is_plain:
            return None
        found = self.context.residency.find_order(external.view.root, self.order)
        if found is None:
            return None
        slot = found.read(np.minimum(self.place(row_tile), len(found.tiles) - 1))
        self.loop.given(slot)
        self._residents.append((found, slot))
        return slot

    def _stays(self, value: int, dtype: DType) -> bool:
        """Whether a result stays in SBUF, whole rows at a time."""
        in_pieces = self.width != self.columns
        if self.group.shapes[value] is not Shape.FULL or (in_pieces and self.row_version is None):
            return False
        row_tiles = -(-self.row_count // self.context.core.sbuf_partitions)
        size = row_tiles * self.columns
        beside = sum(slots[0][0].dtype.byte_count for slots in self._staying.values())
        return value in self._staying or may_stay(self.context, value, size * dtype.byte_count, size * beside)

    def _output(self, value: int, row_tile: int) -> Slot:
        dtype = chip_dtype(self.context.type_of(value).dtype)
        if self._stays(value, dtype):
            version = self._output_version() if self.row_version is None else self.row_version
            slot = self.loop.slot("resident", self.columns * dtype.byte_count, dtype, version=version,
                                   keep=True, whole=True)  # fmt: skip
            places = np.full(int(version.max()) + 1, -1, np.int64)
            live = self.rows(row_tile) > 0
            places[version[live]] = self.place(row_tile)[live]
            self._staying.setdefault(value, []).append((slot, places))
            return slot
        width = 1 if self.group.shapes[value] is Shape.ROW else self.width
        return self.loop.slot("output", width * dtype.byte_count, dtype, version=self._output_version())

    @property
    def needs_whole_rows(self) -> bool:
        """Whether a row of the result must be there at once."""
        return bool(self._per_row)

    def _output_version(self) -> Ints:
        return np.cumsum(np.concatenate([[0], self.last[:-1]])).astype(np.int64)

    # Operands of the fused operations

    def _operand(self, external: External, rows: Ints, width: Ints, live: Bools) -> Slot | None:
        dtype = chip_dtype(self.context.type_of(external.stored_value).dtype)
        if external.form in ("column", "scalar", "iota_column", "iota_row"):
            return self._shared_operand(external, dtype, width)
        if external.form == "row":
            slot = self.loop.slot(
                "row", dtype.byte_count, dtype, version=self._output_version(), extra_buffers=1
            )
            self._fetch(external, slot, rows, 1, rows, live)
            return slot
        slot = self.loop.slot(
            "operand", self.width * dtype.byte_count, dtype, version=self._output_version(), extra_buffers=1
        )
        if external.form == "iota_full":
            self.loop.step(
                Engine.GPSIMD, Opcode.IOTA, writes=(slot,), partitions=rows, elements=width, active=live
            )
        else:
            self._fetch(external, slot, rows * width, self.width, rows, live)
        return slot

    def _shared_operand(self, external: External, dtype: DType, width: Ints) -> Slot:
        """A vector along the columns, spread over the partitions once per block of columns."""
        if external.key in self._shared:
            return self._shared[external.key]
        size = self.width if external.form.endswith("column") else 1
        slot = self.loop.slot("column", size * dtype.byte_count, dtype, version=self.column_version)
        first = self.loop.first_of(self.column_version)
        partitions = min(128, self.row_count)
        elements = width if size > 1 else np.ones_like(width)
        if external.form.startswith("iota"):
            self.loop.step(Engine.GPSIMD, Opcode.IOTA, writes=(slot,), elements=elements, active=first)
        else:
            self._fetch(external, slot, elements * partitions, size, partitions, first)
        self._shared[external.key] = slot
        return slot

    def _fetch(
        self,
        external: External,
        slot: Slot,
        elements: Ints,
        run: int,
        partitions: int | Ints,
        active: Bools,
    ) -> None:
        location = self.context.location(external.view.root if external.view.root >= 0 else external.value)
        item = location.dtype.byte_count
        slot.tensor = location.tensor
        run = max(1, min(run, external.view.run_elements))
        transfer = Transfer(
            self.context.load_queue(location),
            Memory.HBM,
            Memory.SBUF,
            np.maximum(elements, 1) * item,
            run * item,
            partitions,
            location.purpose,
            location.dtype,
            location.tensor,
            strided=1 < run < self.columns,
        )
        self.loop.load(slot, transfer, active=active, after=location.tokens)

    # One tile

    def _tile(
        self, psum: Slot, width: Ints, rows: Ints, live: Bools,
        shared: dict[Key, Slot], outputs: dict[int, Slot], stored: dict[int, Key],
    ) -> None:  # fmt: skip
        """What can be computed from one PSUM bank: everything up to the first reduction along the row."""
        slots = dict(shared)
        wide = slots.get(self._product)
        slots[self._product] = psum
        if wide is not None:
            self._copy(psum, wide, width, rows, live)
        written_outputs = {key: outputs[value] for value, key in stored.items()}
        for micro in self._per_tile:
            target = written_outputs.get(micro.writes) or shared.get(micro.writes)
            slot = target or self._temporary(micro, self.context.core.psum_bank_bytes // 4)
            reads = tuple(slots[key] for key in micro.reads if key in slots)
            self._instruction(micro, reads, (slot,), rows, width, live, joins=target is not None)
            slots[micro.writes] = slot
        for value, key in stored.items():
            if key in slots and slots[key] is not outputs[value] and key not in self._made_per_row:
                self._copy(slots[key], outputs[value], width, rows, live)

    def _instruction(
        self, micro: Micro, reads: Sequence[Slot], writes: Sequence[Slot], rows: Ints, width: Ints,
        live: Bools, *, joins: bool = False,
    ) -> None:  # fmt: skip
        engine = self._engine(micro, reads, int(width.max()))
        opcode, activation, flags = micro.opcode, micro.activation, micro.flags
        if engine is Engine.SCALAR and opcode in AS_ACTIVATION:
            flags |= Flag.REDUCES if opcode is Opcode.TENSOR_REDUCE else Flag.NONE
            opcode, activation = Opcode.ACTIVATE, activation or "identity"
        elif engine is not Engine.SCALAR:
            activation = ""
        self.loop.step(
            engine, opcode, activation=activation, flags=flags, reads=reads, writes=writes, partitions=rows,
            elements=width if micro.shape is Shape.FULL else 1, active=live, accumulates=joins,
        )  # fmt: skip

    # Whole rows: from the first reduction on

    def _whole_row_keys(self) -> list[Key]:
        """Keys made bank by bank (or the product itself) that whole-row instructions read."""
        made = {self._product, *(micro.writes for micro in self._per_tile)}
        read = {key for micro in self._per_row for key in micro.reads}
        return sorted(made & read, key=str)

    def _row_wide(self, key: Key, outputs: dict[int, Slot], stored: dict[int, Key]) -> Slot:
        for value, stored_key in stored.items():
            if stored_key == key:
                return outputs[value]
        value = self._selection.value_of.get(key, self._product if key == self._product else -1)
        dtype = chip_dtype(self.context.type_of(value).dtype) if value >= 0 else DType.F32
        return self.loop.slot(
            "row of sums", self.width * dtype.byte_count, dtype, version=self._output_version()
        )

    def _whole_rows(
        self, shared: dict[Key, Slot], outputs: dict[int, Slot], stored: dict[int, Key], rows: Ints,
        width: Ints, live: Bools,
    ) -> None:  # fmt: skip
        slots = dict(shared)
        written_outputs = {key: outputs[value] for value, key in stored.items()}
        for micro in self._per_row:
            reads = tuple(slots[key] for key in micro.reads if key in slots)
            writes: list[Slot] = []
            if micro.reduces != micro.writes:
                slots[micro.writes] = written_outputs.get(micro.writes) or self._temporary(micro, self.width)
                writes.append(slots[micro.writes])
            if micro.reduces is not None:
                slots[micro.reduces] = written_outputs.get(micro.reduces) or self.loop.slot(
                    "row sum", 4, DType.F32, version=self._output_version()
                )
                writes.append(slots[micro.reduces])
            self._instruction(micro, reads, writes, rows, width, live)
        for value, key in stored.items():
            if key in self._made_per_row and slots[key] is not outputs[value]:
                self._copy(slots[key], outputs[value], width, rows, live)

    def _temporary(self, micro: Micro, width: int) -> Slot:
        value = self._selection.value_of.get(micro.writes)
        dtype = chip_dtype(self.context.type_of(value).dtype) if value is not None else DType.F32
        columns = width if micro.shape is Shape.FULL else 1
        return self.loop.slot("temporary", columns * dtype.byte_count, dtype, version=self._output_version())

    def _engine(self, micro: Micro, reads: Sequence[Slot], elements: int) -> Engine:
        """GpSimd cannot read PSUM; the others share the work evenly."""
        from_psum = any(slot.memory is Memory.PSUM for slot in reads)
        allowed = [engine for engine in micro.engines if engine is not Engine.GPSIMD or not from_psum]
        elements = elements if micro.shape is Shape.FULL else 1
        return self._least_loaded(allowed or [Engine.VECTOR], micro.opcode, elements, reads)

    def _least_loaded(
        self, engines: Sequence[Engine], opcode: Opcode, elements: int, reads: Sequence[Slot]
    ) -> Engine:
        source = Memory.PSUM if any(slot.memory is Memory.PSUM for slot in reads) else Memory.SBUF
        dtype = reads[0].dtype if reads else DType.F32
        cost = {
            engine: instruction_ns(self.context.core, engine, opcode, elements, dtype, source)
            for engine in engines
        }
        chosen = min(engines, key=lambda e: self._load.get(e, 0.0) + cost[e])
        self._load[chosen] = self._load.get(chosen, 0.0) + cost[chosen]
        return chosen

    def _copy(self, source: Slot, target: Slot, width: Ints, rows: Ints, live: Bools) -> None:
        engine = self._least_loaded(
            (Engine.SCALAR, Engine.VECTOR), Opcode.TENSOR_COPY, int(width.max()), (source,)
        )
        self.loop.step(engine, Opcode.TENSOR_COPY, reads=(source,), writes=(target,), partitions=rows,
                        elements=width, active=live, accumulates=True)  # fmt: skip

    def _store(self, value: int, slot: Slot, rows: Ints, width: Ints, live: Bools) -> None:
        location = self.context.locations[value]
        item = location.dtype.byte_count
        if self.group.shapes[value] is Shape.ROW:
            width = np.ones_like(width)
        transfer = Transfer(
            self.context.store_queue(),
            Memory.SBUF,
            Memory.HBM,
            np.maximum(rows * width, 1) * item,
            self.width * item,
            rows,
            location.store_purpose,
            location.dtype,
            location.tensor,
            strided=self.width < self.columns and self.group.shapes[value] is not Shape.ROW,
        )
        self._stores.append((value, self.loop.store(slot, transfer, active=live)))
