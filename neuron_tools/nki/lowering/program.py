"""From a trace to the Program that the simulator times: addresses, dependencies, queues, instruction rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints, Table
from neuron_tools.backend.allocate import NoPlaceError, Places
from neuron_tools.backend.body import CONSTANT, INPUT, OUTPUT, SPILL, Body
from neuron_tools.backend.kinds import READS, Kind, Step, Transfer
from neuron_tools.backend.order import bucket_starts, written_buffers
from neuron_tools.backend.pipeline import Options, asked_options, run_passes
from neuron_tools.backend.schedule import trigger_engine
from neuron_tools.backend.spill import WorkingSetError
from neuron_tools.nki.lowering.bank_check import check_banks
from neuron_tools.nki.lowering.body import make_body, overfull
from neuron_tools.nki.tracer import Tracer
from neuron_tools.records.kernel_source import KernelSource, LoweredKernel, with_source
from neuron_tools.records.program import (
    DMA_DTYPE,
    INSTRUCTION_DTYPE,
    READ_COLUMNS,
    TILE_DTYPE,
    Collective,
    Engine,
    FrameworkOperation,
    HloOperation,
    Memory,
    Opcode,
    Purpose,
    QueueKind,
    TensorKind,
    empty_table,
)
from neuron_tools.simulator.builder import ENGINE_COUNT, ProgramBuilder

QUEUES = 4
"""Rings of each use, taken in turn, so that one transfer's latency hides behind others."""
_MADE = {
    "hardware": QueueKind.HARDWARE_DYNAMIC, "software": QueueKind.SOFTWARE_DYNAMIC, "runtime": QueueKind.DATA,
}  # fmt: skip
_TENSOR_KINDS = {
    INPUT: TensorKind.INPUT, OUTPUT: TensorKind.OUTPUT, CONSTANT: TensorKind.CONSTANT,
}  # fmt: skip
_PURPOSES = {INPUT: Purpose.INPUT, CONSTANT: Purpose.INPUT, OUTPUT: Purpose.OUTPUT}


def lower(
    trace: Tracer,
    name: str,
    *,
    framework: FrameworkOperation | None = None,
    options: Options | None = None,
) -> LoweredKernel:
    """The Program of one recorded trace.

    Args:
        trace: The trace of one kernel instance (or of all that ran one after another).
        name: The kernel's name.
        framework: Operation of the framework that called it; default one named after the kernel.
        options: Passes of the back end that run; None: those that `$NEURON_TOOLS_SCHEDULE` asks for.

    Raises:
        OutOfMemoryError: The tiles that live at one time do not fit.
        RaceError: Tiles that the kernel placed at one address are used at the same time.
    """
    return _Lowering(trace, name, framework, options or asked_options(os.environ)).lowered()


@dataclass(frozen=True)
class _Streams:
    """Where each row completes: an engine, or a queue."""

    of_row: npt.NDArray[np.int32]
    queue_rows: npt.NDArray[np.int32]  # queue of each DMA row, -1 for others
    count: int


class _Lowering:
    """State of the lowering of one trace."""

    def __init__(
        self, trace: Tracer, name: str, framework: FrameworkOperation | None, options: Options | None
    ) -> None:
        self.trace = trace
        self.name = name
        self.framework = framework or FrameworkOperation(f"nki::{name}")
        self.builder = ProgramBuilder(name, trace.core.target)
        written = make_body(trace)
        self.flops = _flops(written)
        self.body, self.places = _compiled(trace, written, options)
        self.rows, self.regions, self.kinds = self.body.rows, self.body.regions, self.body.kinds

    def lowered(self) -> LoweredKernel:
        """The Program and its source."""
        operation = self.builder.framework(self.framework)
        self.builder.hlo(HloOperation(f"nki_kernel.{self.name}", "custom_call", (operation,), (1.0,),
                                      self.flops, ""))  # fmt: skip
        tensors = self._tensors()
        streams = self._streams()
        edges = self._edges(streams)
        layout = self._emit(tensors, streams, edges)
        for warning in self.trace.warnings:
            self.builder.warning(warning)
        source = self._source(layout)
        return LoweredKernel(with_source(self.builder.finish(), source), source)

    # What it refers to

    def _tensors(self) -> Ints:
        """Program tensor of each buffer in HBM, -1 for others."""
        buffers = self.body.buffers
        rows = np.full(len(buffers), -1, np.int64)
        for number in np.flatnonzero(~buffers.on_chip).tolist():
            rows[number] = self._tensor(number)
        return rows

    def _tensor(self, number: int) -> int:
        origin = self.trace.buffers[int(self.body.buffers.origin[number])]
        role = int(self.body.buffers.role[number])
        name = f"spill.{number}" if role == SPILL else origin.name or f"hbm.{number}"
        shape = origin.shape
        if role == SPILL:
            shape = (int(self.body.buffers.lines[number]), origin.pitch)
        return self.builder.tensor(
            name, _TENSOR_KINDS.get(role, TensorKind.INTERMEDIATE), origin.dtype.chip, shape
        )

    # Streams

    def _streams(self) -> _Streams:
        """Stream of each row: its engine, or the queue of its DMA, taken in turn."""
        kind_of = self.rows[:, 0]
        engine = np.array([int(kind.steps[-1].engine) if kind.steps else 0 for kind in self.kinds], np.int32)
        of_row = engine[kind_of] if len(self.kinds) else np.zeros(len(kind_of), np.int32)
        queue_rows = np.full(len(kind_of), -1, np.int32)
        uses: dict[tuple[str, Engine, QueueKind], list[int]] = {}
        for kind in self.kinds:
            if kind.transfer is not None:
                uses.setdefault(self._use(kind.transfer), []).append(kind.number)
        for (use, starter, made), numbers in uses.items():
            members = np.flatnonzero(np.isin(kind_of, numbers))
            count = 1 if made in (QueueKind.SOFTWARE_DYNAMIC, QueueKind.COLLECTIVE) else QUEUES
            queues = [
                self.builder.queue(f"q{starter.title}{use}{turn}", starter, made) for turn in range(count)
            ]
            queue_rows[members] = np.array(queues, np.int32)[np.arange(len(members)) % count]
        dma = queue_rows >= 0
        of_row = of_row.astype(np.int32)
        of_row[dma] = ENGINE_COUNT + queue_rows[dma]
        return _Streams(of_row, queue_rows, ENGINE_COUNT + int(queue_rows.max(initial=-1)) + 1)

    def _use(self, transfer: Transfer) -> tuple[str, Engine, QueueKind]:
        """Name of the use, starting engine and descriptors of a transfer.

        The hardware's own descriptors exist on Sync and Scalar only.
        """
        if transfer.collective is not None:
            return "Collective", transfer.engine or Engine.SYNC, QueueKind.COLLECTIVE
        made, starter = _MADE[transfer.descriptors_by], trigger_engine(transfer)
        if made is QueueKind.SOFTWARE_DYNAMIC:
            return "Dynamic", starter, made
        loads = transfer.source_memory is Memory.HBM and transfer.destination_memory is not Memory.HBM
        if starter is Engine.GPSIMD and made is QueueKind.HARDWARE_DYNAMIC:
            made = QueueKind.OUTPUT
        return "Load" if loads else "Store", starter, made

    # Dependencies

    def _edges(self, streams: _Streams) -> tuple[Any, ...]:
        from neuron_tools.backend.dependency_kernel import find_dependencies

        ordered = np.ones(max(streams.count, 1), bool)
        ordered[ENGINE_COUNT:] = False
        found: tuple[Any, ...] = find_dependencies(
            self.rows, self.regions, written_buffers(self.body), bucket_starts(self.body),
            self.places.predecessor_start, self.places.predecessors, streams.of_row, ordered,
        )  # fmt: skip
        return self._with_ties(*found)

    def _with_ties(self, consumers: Ints, producers: Ints, slots: Any, hazards: Ints) -> tuple[Any, ...]:
        """The dependencies with those that the kernel itself asked for."""
        if not self.trace.ties:
            return consumers, producers, slots, hazards
        at = np.full(int(self.body.origin.max(initial=-1)) + 1, -1, np.int64)
        own = self.body.origin >= 0
        at[self.body.origin[own]] = np.flatnonzero(own)
        ties = at[np.array(self.trace.ties, np.int64)]
        ties = ties[(ties >= 0).all(axis=1)].astype(consumers.dtype)
        first_operand = np.zeros(len(ties), slots.dtype)
        return (np.concatenate([consumers, ties[:, 0]]), np.concatenate([producers, ties[:, 1]]),
                np.concatenate([slots, first_operand]), hazards)  # fmt: skip

    # Rows

    def _emit(self, tensors: Ints, streams: _Streams, edges: tuple[Any, ...]) -> _Layout:
        layout = _Layout(self.kinds, self.rows)
        block = layout.instructions(self.builder)
        dma_rows = np.flatnonzero(streams.queue_rows >= 0)
        dmas = self._dmas(dma_rows, tensors, streams)
        block["engine"][layout.first[dma_rows]] = self._queue_engines()[streams.queue_rows[dma_rows]]
        block["dma"][layout.first[dma_rows]] = np.arange(len(dma_rows))
        tiles, tile_of = self._tiles()
        check_banks(self.trace, self.body, tiles, tile_of)
        self._name_tiles(block, layout, tile_of, edges[3], dmas, dma_rows)
        self.builder.tiles(tiles)
        self.builder.instructions(block, dmas)
        self._take_part(dma_rows)
        is_dma = streams.queue_rows >= 0
        dma_number = np.cumsum(is_dma) - 1
        producers, consumers, slots = edges[1], edges[0], edges[2]
        tokens = np.where(is_dma[producers], -2 - dma_number[producers], layout.last[producers])
        self.builder.depend(layout.waiting_row(consumers, slots), tokens)
        return layout

    def _take_part(self, dma_rows: Ints) -> None:
        """Make the collectives among the transfers parts of what their ranks do together."""
        if not any(kind.transfer is not None and kind.transfer.collective is not None for kind in self.kinds):
            return
        for row, kind in enumerate(self.rows[dma_rows, 0].tolist()):
            transfer = self.kinds[kind].transfer
            if transfer is not None and transfer.collective is not None:
                self.builder.take_part(row, Collective(
                    transfer.collective, transfer.bytes, transfer.group, transfer.dtype, self.kinds[kind].name
                ))  # fmt: skip

    def _queue_engines(self) -> npt.NDArray[np.uint8]:
        return np.array(self.builder._queue_engines, np.uint8)

    def _dmas(self, dma_rows: Ints, tensors: Ints, streams: _Streams) -> Table:
        table = empty_table(DMA_DTYPE, len(dma_rows))
        kinds = self.rows[dma_rows, 0]
        for kind in self.kinds:
            transfer = kind.transfer
            if transfer is None:
                continue
            chosen = kinds == kind.number
            table["source_memory"][chosen] = int(transfer.source_memory)
            table["destination_memory"][chosen] = int(transfer.destination_memory)
            table["dtype"][chosen] = int(transfer.dtype)
            table["transpose"][chosen] = int(transfer.transpose)
            table["strided"][chosen] = int(transfer.strided)
            table["cast"][chosen] = transfer.cast
            table["bytes"][chosen] = transfer.bytes
            table["descriptor_bytes"][chosen] = transfer.descriptor_bytes
            table["descriptors"][chosen] = -(-transfer.bytes // max(transfer.descriptor_bytes, 1))
            table["partitions"][chosen] = transfer.partitions
        table["queue"] = streams.queue_rows[dma_rows]
        table["hlo"] = 0
        written = self.regions[self.rows[dma_rows, 3], 0] if len(dma_rows) else np.zeros(0, np.int64)
        read = self.regions[self.rows[dma_rows, 3 + READS], 0] if len(dma_rows) else np.zeros(0, np.int64)
        from_hbm = tensors[read] >= 0
        table["tensor"] = np.where(from_hbm, tensors[read], tensors[written])
        role = self.body.buffers.role
        purposes = np.array([int(_PURPOSES.get(r, Purpose.INTERMEDIATE)) for r in range(SPILL + 1)], np.int64)
        kinds_of = purposes[role]
        table["purpose"] = np.where(from_hbm, kinds_of[read], np.where(
            kinds_of[written] == Purpose.INPUT, Purpose.OUTPUT, kinds_of[written]))  # fmt: skip
        if len(dma_rows):
            table["purpose"][role[written] == SPILL] = int(Purpose.SPILL_SAVE)
            table["purpose"][role[read] == SPILL] = int(Purpose.SPILL_RELOAD)
        return table

    def _tiles(self) -> tuple[Table, npt.NDArray[np.int32]]:
        """A tile row per region on chip; and the tile of each region, -1 elsewhere."""
        regions, buffers = self.regions, self.body.buffers
        partitions = np.maximum(buffers.partitions, 1)
        chosen = np.flatnonzero(buffers.on_chip[regions[:, 0]]) if len(regions) else np.zeros(0, np.int64)
        tile_of = np.full(len(regions), -1, np.int32)
        tile_of[chosen] = np.arange(len(chosen))
        table = empty_table(TILE_DTYPE, len(chosen))
        part = regions[chosen].astype(np.int64)
        buffer = part[:, 0]
        table["memory"] = buffers.memory[buffer]
        table["address"] = self._block_address(buffer, part[:, 1] // partitions[buffer]) + part[:, 3]
        table["bytes_per_partition"] = part[:, 4] - part[:, 3]
        table["start_partition"] = part[:, 1] % partitions[buffer]
        table["partitions"] = np.minimum(part[:, 2] - part[:, 1], partitions[buffer])
        return table, tile_of

    def _block_address(self, buffer: Ints, block: Ints) -> Ints:
        """Byte in each partition of blocks of buffers."""
        address = np.maximum(self.places.address[buffer], 0) + block * self.body.buffers.pitch_bytes[buffer]
        for number, places in self.body.block_addresses.items():
            chosen = buffer == number
            address[chosen] = np.array(places, np.int64)[block[chosen] % len(places)]
        return np.asarray(address)

    def _name_tiles(
        self, block: Table, layout: _Layout, tile_of: npt.NDArray[np.int32], hazard: Ints, dmas: Table,
        dma_rows: Ints,
    ) -> None:  # fmt: skip
        """Fill the tile columns. A read takes the tile of the write of its own engine that it follows."""
        written = self.rows[:, 3]
        destination = np.where(written >= 0, tile_of[written], -1)
        layout.fill(block, "destination", destination, layout.writes)
        hazards = hazard.reshape(-1, 4)
        for column, slot_of in zip(READ_COLUMNS, layout.slots.T):
            for slot in range(4):
                own = self.rows[:, 3 + READS + slot]
                follows = hazards[:, slot]
                tile = np.where(follows >= 0, destination[follows], np.where(own >= 0, tile_of[own], -1))
                layout.fill(block, column, tile, slot_of == READS + slot)
        loaded = destination[dma_rows]
        stored = self.rows[dma_rows, 3 + READS]
        dmas["tile"] = np.where(loaded >= 0, loaded, tile_of[stored]) if len(dma_rows) else -1

    def _source(self, layout: _Layout) -> KernelSource:
        trace = self.trace
        labels, call_label = self._labels()
        return KernelSource(
            names=(self.name,) * len(self.kinds),
            stacks=trace.stacks,
            loops=tuple(trace.loops),
            stack=np.repeat(self.rows[:, 1], layout.counts).astype(np.int32),
            iteration=np.repeat(self.rows[:, 2], layout.counts).astype(np.int32),
            iterations=trace.iteration_table(),
            call=np.repeat(np.arange(len(self.rows), dtype=np.int32), layout.counts),
            calls=tuple(kind.name for kind in self.kinds),
            call_kind=self.rows[:, 0].astype(np.int32).copy(),
            labels=labels,
            call_label=call_label,
            transformations=self.body.changes,
            launches=(trace.launched,) if trace.launched is not None else (),
        )

    def _labels(self) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
        """The names that the kernel gave to calls, and each call's place among them, -1 for none."""
        given = self.trace.names
        if not given:
            return (), np.zeros(0, np.int32)
        numbers = {label: number for number, label in enumerate(dict.fromkeys(given.values()))}
        origins = self.body.origin.tolist()
        rows = [numbers[given[row]] if row in given else -1 for row in origins]
        return tuple(numbers), np.array(rows, np.int32)


def _compiled(trace: Tracer, written: Body, options: Options | None) -> tuple[Body, Places]:
    """The back end's passes over a kernel.

    Raises:
        OutOfMemoryError: What lives at one time does not fit; names the tile and its line.
    """
    try:
        return run_passes(written, options)
    except (NoPlaceError, WorkingSetError) as error:
        raise overfull(trace, written, error) from None


def _flops(body: Body) -> int:
    if not len(body):
        return 0
    calls = np.bincount(body.rows[:, 0], minlength=len(body.kinds))
    return int(sum(int(calls[kind.number]) * kind.flops for kind in body.kinds))


class _Layout:
    """Which rows of the Program each trace row becomes.

    Attributes:
        counts, first, last: (rows,) how many, the first, and the last (which completes it).
        writes: (program rows,) whether the row completes the call's result.
        slots: (program rows, READ_COLUMNS) operand slot that each column of tiles that are read names.
    """

    def __init__(self, kinds: list[Kind], rows: npt.NDArray[np.int32]) -> None:
        self.kinds = kinds
        sizes = np.array([max(len(kind.steps), 1) for kind in kinds], np.int64)
        self.kind_of = rows[:, 0].astype(np.int64)
        self.counts = sizes[self.kind_of] if len(rows) else np.zeros(0, np.int64)
        self.last = np.cumsum(self.counts) - 1
        self.first = self.last - self.counts + 1
        templates = [self._template(kind) for kind in kinds]
        self._starts = np.cumsum(sizes) - sizes
        self._slots = [_slot_rows(kind) for kind in kinds]
        self.template_row = np.repeat(self._starts[self.kind_of] if len(rows) else self.counts, self.counts)
        self.template_row = (
            self.template_row + np.arange(int(self.counts.sum())) - np.repeat(self.first, self.counts)
        )
        self.call_of = np.repeat(np.arange(len(rows)), self.counts)
        self._templates = np.concatenate(templates) if templates else np.zeros(0, INSTRUCTION_DTYPE)
        steps = [step for kind in kinds for step in kind.steps or (_TRIGGER,)]
        slots = np.array([[step.slot(column) for column in READ_COLUMNS] for step in steps], np.int64)
        self.slots = slots.reshape(-1, len(READ_COLUMNS))[self.template_row]
        self.writes = np.array([bool(step.writes) for step in steps], bool)[self.template_row]

    @staticmethod
    def _template(kind: Kind) -> Table:
        table = empty_table(INSTRUCTION_DTYPE, max(len(kind.steps), 1))
        if not kind.steps:
            table["opcode"] = int(Opcode.DMA_TRIGGER)
        for row, step in enumerate(kind.steps):
            for column in ("engine", "opcode", "input_dtype", "output_dtype", "source_memory",
                           "destination_memory", "flags", "partitions", "columns", "elements",
                           "open_engines"):  # fmt: skip
                table[column][row] = int(getattr(step, column))
        table["hlo"] = 0
        return table

    def instructions(self, builder: ProgramBuilder) -> Table:
        """The instruction rows, without tiles and DMAs."""
        block: Table = self._templates[self.template_row].copy()
        names = [step.activation for kind in self.kinds for step in kind.steps or (_TRIGGER,)]
        functions = np.array([builder.activation(name) if name else 0 for name in names], np.uint16)
        if len(block):
            block["activation"] = functions[self.template_row]
        return block

    def fill(self, block: Table, column: str, values: Any, where: npt.NDArray[np.bool_]) -> None:
        """Set a column of the rows of `where` to their call's value."""
        block[column][where] = values[self.call_of[where]]

    def waiting_row(self, consumers: Ints, slots: npt.NDArray[np.int32]) -> Ints:
        """Program row of each consumer that touches the operand slot first."""
        table = np.array(self._slots, np.int64).reshape(-1, 6)
        return np.asarray(self.first[consumers] + table[self.kind_of[consumers], slots])


_TRIGGER = Step(Engine.SYNC, Opcode.DMA_TRIGGER)
"""Stands for the step of a DMA."""


def _slot_rows(kind: Kind) -> list[int]:
    """For each operand slot, the first step that touches it."""
    rows = []
    for slot in range(6):
        touching = [row for row, step in enumerate(kind.steps) if slot in step.waits]
        rows.append(touching[0] if touching else max(len(kind.steps) - 1, 0))
    return rows
