"""Sections: code compiled once and appended many times (equal layers of a model, trips of a loop).

A section is recorded in a context of its own, in which everything that comes from outside is a
*placeholder token*: the completion of a value that it reads, and the last use of on-chip memory that it
takes over. Appending it shifts its rows and puts real tokens in the placeholders' place, so every copy is
ordered exactly as if it had been generated there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints, Table
from neuron_tools.compiler.allocate import Allocator, LastUses, latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.passes.groups import FusionPlan
from neuron_tools.frozen import frozen
from neuron_tools.records.program import (
    TILE_COLUMNS,
    Collective,
    HloOperation,
    Memory,
    Purpose,
    Tensor,
    TensorKind,
)
from neuron_tools.records.rows import copied
from neuron_tools.simulator.builder import ProgramBuilder

_FIRST_PLACEHOLDER = -(1 << 40)
_STREAMS = 1 << 20
"""Placeholders are streams of their own, far above those of engines and queues."""
_KERNELS = "nki_kernel."
_UNUSED = {-1: _FIRST_PLACEHOLDER + 1}
_LOADED = (Purpose.INPUT, Purpose.WEIGHT, Purpose.INTERMEDIATE)


@frozen
class ValuePlaceholder:
    """The completion of a value made outside the section."""

    value: int


@frozen
class MemoryPlaceholder:
    """The last use, before the section, of a range of on-chip memory."""

    memory: Memory
    start: int
    end: int


Placeholder = ValuePlaceholder | MemoryPlaceholder


def is_placeholder(tokens: Ints) -> npt.NDArray[np.bool_]:
    """Which tokens stand for something outside the section."""
    return np.asarray(tokens <= _FIRST_PLACEHOLDER)


@dataclass(frozen=True)
class Section:
    """Recorded code: rows count from 0, `hlo`, `tensors` and tiles refer to the section's own lists.

    Attributes:
        rows, tokens: Dependencies; tokens are local or placeholders.
        parameters: Tensor row -> value read from outside.
        made: Tensor row -> value that it holds.
        outputs: Value -> where it is (tensor and tokens local).
        memory: (memory, start, end, tokens) of every range that the section used.
        parts: DMA row -> the collective that it is a part of.
    """

    instructions: Table
    dmas: Table
    tiles: Table
    rows: Ints
    tokens: Ints
    placeholders: tuple[Placeholder, ...]
    hlo: tuple[HloOperation, ...]
    tensors: tuple[Tensor, ...]
    parameters: Mapping[int, int]
    made: Mapping[int, int]
    outputs: Mapping[int, Location]
    memory: tuple[tuple[Memory, int, int, Mapping[int, int]], ...]
    parts: Mapping[int, Collective]
    loaded_tables: tuple[str, ...]


@dataclass
class Binding:
    """What a copy of a section stands for.

    Attributes:
        values: Value of the recorded code -> value of the copy; absent ones are the same.
        framework: Framework row -> that of the copy, likewise.
        prefix: Put before the names of its HLO operations.
        reused: Tensor row of the section -> tensor row of an earlier copy whose memory it takes over.
    """

    values: Mapping[int, int] = field(default_factory=dict)
    framework: Mapping[int, int] = field(default_factory=dict)
    prefix: str = ""
    reused: Mapping[int, int] = field(default_factory=dict)


class SectionRecorder(ProgramBuilder):
    """Takes what code generation appends; queues, functions and warnings belong to the whole program."""

    def __init__(self, outer: ProgramBuilder) -> None:
        super().__init__(outer.name, outer.target)
        self.placeholders: list[Placeholder] = []
        self._queue_engines = outer._queue_engines
        self.queue = outer.queue  # type: ignore[method-assign]  # the program's own
        self.activation = outer.activation  # type: ignore[method-assign]  # the program's own
        self.warning = outer.warning  # type: ignore[method-assign]  # the program's own

    def placeholder(self, item: Placeholder) -> dict[int, int]:
        """A new placeholder as tokens."""
        self.placeholders.append(item)
        number = len(self.placeholders)
        return {_STREAMS + number: _FIRST_PLACEHOLDER - number}

    def tables(self) -> tuple[Table, Table, Table]:
        """(instructions, dmas, tiles) so far."""
        return self._instructions.table(), self._dmas.table(), self._tiles.table()

    def dependencies(self) -> tuple[Ints, Ints]:
        """(rows, tokens) so far."""
        return _between_engines(self._instructions.table()["engine"], *self._edges_so_far())

    @property
    def parts(self) -> dict[int, Collective]:
        """DMA row -> the collective that it is a part of."""
        return {row: self._collectives[index] for row, index in self._parts.items()}

    @property
    def operations(self) -> tuple[HloOperation, ...]:
        """HLO operations so far."""
        return tuple(self._hlo)

    @property
    def hbm_tensors(self) -> tuple[Tensor, ...]:
        """Tensors so far."""
        return tuple(self._tensors)


def _between_engines(engine: npt.NDArray[np.generic], rows: Ints, tokens: Ints) -> tuple[Ints, Ints]:
    """Dependencies that order anything, once each: an engine's own instructions are in order anyway."""
    same = np.zeros(len(rows), bool)
    local = tokens >= 0
    same[local] = engine[rows[local]] == engine[tokens[local]]
    kept = (tokens != -1) & ~same
    rows, tokens = rows[kept], tokens[kept]
    order = np.lexsort((tokens, rows))
    rows, tokens = rows[order], tokens[order]
    new = np.ones(len(rows), bool)
    new[1:] = (np.diff(rows) != 0) | (np.diff(tokens) != 0)
    return rows[new], tokens[new]


class _SectionAllocator(Allocator):
    """All memory is free; what was there before is a placeholder."""

    def __init__(self, outer: Allocator, memory: Memory, recorder: SectionRecorder) -> None:
        super().__init__(outer.capacity, outer.alignment)
        self.last_uses = LastUses(outer.capacity, _UNUSED)
        self._memory = memory
        self._recorder = recorder

    def tokens_of(self, start: int, end: int) -> Mapping[int, int]:
        tokens = self.last_uses.of(start, end)
        if tokens.pop(-1, None) is None:
            return tokens
        return {**tokens, **self._recorder.placeholder(MemoryPlaceholder(self._memory, start, end))}


class SectionContext(Context):
    """A context whose values come from another one, as placeholders."""

    def __init__(self, outer: Context, plan: FusionPlan) -> None:
        self.recorder = SectionRecorder(outer.builder)
        super().__init__(plan, self.recorder, outer.core, outer.options, outer.emitters)
        self.outer = outer
        self.sbuf = _SectionAllocator(outer.sbuf, Memory.SBUF, self.recorder)
        self.psum = _SectionAllocator(outer.psum, Memory.PSUM, self.recorder)
        self.parameters: dict[int, int] = {}
        self.made: dict[int, int] = {}
        self.inherit(outer)

    def knows(self, value: int) -> bool:
        """Whether a value has a place here or outside."""
        return value in self.locations or self.outer.knows(value)

    def location(self, value: int) -> Location:
        """Where a value is; one from outside becomes a parameter of the section."""
        if value not in self.locations and self.outer.knows(value):
            self.parameter(value, self.outer.location(value))
        return super().location(value)

    def parameter(self, value: int, place: Location) -> None:
        """Let a value be one that every copy of the section gets from outside."""
        row = self.recorder.tensor("", place.kind, place.dtype, place.type.shape)
        self.parameters[row] = value
        tokens = self.recorder.placeholder(ValuePlaceholder(value))
        self.locations[value] = Location(row, place.type, place.kind, tokens)

    def define(self, value: int, kind: TensorKind | None = None, name: str = "") -> Location:
        """Give a value a tensor of each copy's own."""
        location = super().define(value, kind, name)
        self.made[location.tensor] = value
        return location

    def take_over(self, value: int, updated: int) -> Location:
        """Give a value the memory of another one, in each copy that copy's."""
        location = super().take_over(value, updated)
        if location.tensor in self.made:
            self.made[location.tensor] = value
        return location

    def section(self, outputs: Sequence[int]) -> Section:
        """What has been recorded; `outputs` are values that others may read."""
        places = {value: self.location(value) for value in outputs}
        instructions, dmas, tiles = self.recorder.tables()
        rows, tokens = self.recorder.dependencies()
        memory = [
            (memory, start, end, tokens_)
            for memory, allocator in ((Memory.SBUF, self.sbuf), (Memory.PSUM, self.psum))
            for start, end, tokens_ in allocator.last_uses.pieces()
            if -1 not in tokens_
        ]
        return Section(
            instructions, dmas, tiles, rows, tokens, tuple(self.recorder.placeholders),
            self.recorder.operations, self.recorder.hbm_tensors, dict(self.parameters), dict(self.made),
            places, tuple(memory), self.recorder.parts, self.loaded_tables,
        )  # fmt: skip


def append_section(context: Context, section: Section, binding: Binding) -> tuple[Ints, dict[int, Location]]:
    """Append a copy of a section.

    Returns:
        The program's row of each of the section's tensors, and where each output is, by recorded value.
    """
    return _Copy(context, section, binding).append()


class _Copy:
    def __init__(self, context: Context, section: Section, binding: Binding) -> None:
        self._context = context
        self._section = section
        self._binding = binding
        builder = context.builder
        self._first = builder.instruction_count
        self._first_dma = builder.dma_count
        self._resolved = [self._resolve(item) for item in section.placeholders]

    def append(self) -> tuple[Ints, dict[int, Location]]:
        section, context = self._section, self._context
        tensors = self._tensors()
        tiles = copied(section.tiles)
        tiles["tensor"] = mapped_rows(tiles["tensor"], tensors)
        first_tile = context.builder.tiles(tiles)
        hlo = self._hlo()
        block, dmas = copied(section.instructions), copied(section.dmas)
        for column in TILE_COLUMNS:
            block[column][block[column] >= 0] += first_tile
        block["hlo"] = mapped_rows(block["hlo"], hlo)
        dmas["tile"][dmas["tile"] >= 0] += first_tile
        dmas["hlo"] = mapped_rows(dmas["hlo"], hlo)
        self._set_purposes(dmas)
        dmas["tensor"] = mapped_rows(dmas["tensor"], tensors)
        context.builder.instructions(block, dmas)
        for row, collective in section.parts.items():
            context.builder.take_part(row + self._first_dma, collective)
        self._depend()
        self._leave_memory()
        context.loaded_tables = section.loaded_tables
        return tensors, {value: self._moved(place, tensors) for value, place in section.outputs.items()}

    def _value(self, value: int) -> int:
        return self._binding.values.get(value, value)

    def _resolve(self, item: Placeholder) -> Mapping[int, int]:
        if isinstance(item, ValuePlaceholder):
            return self._context.location(self._value(item.value)).tokens
        return self._context.allocator(item.memory).tokens_of(item.start, item.end)

    def _tensors(self) -> Ints:
        section, context = self._section, self._context
        rows = np.empty(len(section.tensors), np.int64)
        for row, tensor in enumerate(section.tensors):
            if row in section.parameters:
                rows[row] = context.location(self._value(section.parameters[row])).tensor
            elif row in self._binding.reused:
                rows[row] = self._binding.reused[row]
            else:
                name, kind = self._identity(row)
                rows[row] = context.builder.tensor(name, kind, tensor.dtype, tensor.shape)
        return rows

    def _identity(self, row: int) -> tuple[str, TensorKind]:
        """Name and kind of a tensor that the copy makes."""
        tensor, value = self._section.tensors[row], self._section.made.get(row)
        if value is None or tensor.kind is TensorKind.CONSTANT:
            return tensor.name, tensor.kind
        kind = self._context.kind_of(self._value(value))
        return f"{kind.name.lower()}.{self._value(value)}", kind

    def _hlo(self) -> Ints:
        context, framework = self._context, self._binding.framework
        rows = [
            context.builder.hlo(
                replace(
                    operation,
                    name=context.unique_name(_stem(operation), self._binding.prefix),
                    framework=tuple(framework.get(row, row) for row in operation.framework),
                )
            )
            for operation in self._section.hlo
        ]
        return np.array(rows, np.int64)

    def _set_purposes(self, dmas: Table) -> None:
        """What a copy reads may be a weight where the recorded code read an intermediate."""
        for row, value in self._section.parameters.items():
            place = self._context.location(self._value(value))
            chosen = (dmas["tensor"] == row) & np.isin(dmas["purpose"], _LOADED)
            dmas["purpose"][chosen & (dmas["source_memory"] == Memory.HBM)] = place.purpose
        for row in self._section.made:
            is_output = self._identity(row)[1] is TensorKind.OUTPUT
            stored = (dmas["tensor"] == row) & (dmas["destination_memory"] == Memory.HBM)
            dmas["purpose"][stored] = Purpose.OUTPUT if is_output else Purpose.INTERMEDIATE

    def _depend(self) -> None:
        section, builder = self._section, self._context.builder
        outside = is_placeholder(section.tokens)
        builder.depend(section.rows[~outside] + self._first, self._shifted(section.tokens[~outside]))
        for number in np.unique(section.tokens[outside]).tolist():
            rows = section.rows[section.tokens == number] + self._first
            for token in self._resolved[_FIRST_PLACEHOLDER - number - 1].values():
                builder.depend(rows, token)

    def _shifted(self, tokens: Ints) -> Ints:
        return np.where(tokens >= 0, tokens + self._first, tokens - self._first_dma)

    def _now(self, tokens: Mapping[int, int]) -> dict[int, int]:
        """Local tokens as those of the program."""
        result: dict[int, int] = {}
        for stream, token in tokens.items():
            if token <= _FIRST_PLACEHOLDER:
                result = latest(result, self._resolved[_FIRST_PLACEHOLDER - token - 1])
            else:
                moved = token + self._first if token >= 0 else token - self._first_dma
                result = latest(result, {stream: moved})
        return result

    def _leave_memory(self) -> None:
        for memory, start, end, tokens in self._section.memory:
            self._context.allocator(memory).last_uses.set(start, end, self._now(tokens))

    def _moved(self, place: Location, tensors: Ints) -> Location:
        kind = self._identity(place.tensor)[1] if place.tensor in self._section.made else place.kind
        return replace(place, tensor=int(tensors[place.tensor]), kind=kind, tokens=self._now(place.tokens))


def _stem(operation: HloOperation) -> str:
    """What an operation's name says besides its number and the trip it was recorded in."""
    if not operation.kernel:
        return operation.opcode
    return operation.name[operation.name.index(_KERNELS) :].rpartition(".")[0]


def mapped_rows(column: npt.NDArray[np.generic], table: Ints) -> Ints:
    """Rows of what is appended as rows of the program; -1 stays."""
    rows = column.astype(np.int64)
    return np.where(rows >= 0, table[np.maximum(rows, 0)], -1) if len(table) else rows


__all__ = ["Binding", "Section", "SectionContext", "append_section", "mapped_rows"]
