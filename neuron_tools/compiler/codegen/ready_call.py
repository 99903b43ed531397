"""Code generation for a custom call with a ready Program: its tables are appended, its memory is moved.

The Program orders itself; here it is tied to what stands around it. Loads of an operand wait for the operand,
the first writes to SBUF and PSUM for the last use of the range that is handed to it, and the results are
complete when its last stores are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints, Table
from neuron_tools.compiler.allocate import Allocator, Block, OutOfOnChipMemory
from neuron_tools.compiler.codegen.context import Context, framework_shares
from neuron_tools.compiler.codegen.estimate import generate_estimate
from neuron_tools.compiler.codegen.section import mapped_rows
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.compiler.ready_program import ReadyProgram, ready_program_of
from neuron_tools.records.program import TILE_COLUMNS, Memory, Program, Purpose
from neuron_tools.records.rows import copied
from neuron_tools.simulator.builder import ENGINE_COUNT, dma_token

_ON_CHIP = (Memory.SBUF, Memory.PSUM)
_LOADED = (Purpose.INPUT, Purpose.WEIGHT, Purpose.INTERMEDIATE)


def generate_custom_call(context: Context, group: Group) -> None:
    """Emit a custom call: its own Program where it has one, else an estimate from its bytes."""
    ready = ready_program_of(group.operations[0])
    if ready is None:
        generate_estimate(context, group)
    else:
        _ReadyCall(context, group, ready).append()


class _ReadyCall:
    """One call while it is appended."""

    def __init__(self, context: Context, group: Group, ready: ReadyProgram) -> None:
        self._context = context
        self._operation = group.operations[0]
        self._group = group
        self._ready = ready
        self._program = ready.program
        self._operands = [(row, self._operation.operands[n]) for row, n in ready.operands]
        self._results = [(row, self._operation.results[n]) for row, n in ready.results]
        self._first = context.builder.instruction_count
        self._first_dma = context.builder.dma_count

    def append(self) -> None:
        program, builder = self._program, self._context.builder
        blocks = self._allocate()
        hlo = self._hlo()
        tensors = self._tensors()
        tiles = copied(program.tiles)
        for memory, block in blocks.items():
            tiles["address"][tiles["memory"] == memory] += block.address
        tiles["first_use"] = tiles["last_use"] = -1
        first_tile = builder.tiles(tiles)
        instructions = self._instructions(hlo, first_tile)
        dmas = self._dmas(hlo, first_tile, tensors)
        builder.instructions(instructions, dmas)
        for row in np.flatnonzero(program.dmas["collective"] >= 0).tolist():
            collective = program.collectives[program.dmas["collective"][row]]
            builder.take_part(row + self._first_dma, collective)
        rows, tokens = dependencies(program)
        builder.depend(rows + self._first, self._now(tokens))
        self._wait_for_operands()
        self._wait_for_memory(blocks)
        self._complete(dmas)
        for warning in program.warnings:
            builder.warning(warning)

    # What it is

    def _hlo(self) -> Ints:
        """Rows of its HLO operations; all belong to the call's framework operations."""
        rows, shares = framework_shares(self._group.operations, [])
        builder = self._context.builder
        return np.array(
            [
                builder.hlo(
                    replace(
                        operation,
                        name=self._context.unique_name(self._ready.name),
                        opcode="custom_call",
                        framework=rows,
                        shares=shares,
                        kernel=self._ready.key,
                    )
                )
                for operation in self._program.hlo
            ],
            np.int64,
        )

    def _tensors(self) -> Ints:
        """The program's row of each of its tensors: those of operands and results are the module's."""
        context = self._context
        rows = np.full(len(self._program.tensors), -1, np.int64)
        for row, value in self._operands:
            rows[row] = context.location(value).tensor
        operands = dict(self._operands)
        for row, value in self._results:
            if row in operands:  # an operand that is written in place
                context.locations[value] = replace(context.location(operands[row]))
            elif value not in context.locations:
                context.define(value)
            rows[row] = context.locations[value].tensor
        for row, tensor in enumerate(self._program.tensors):
            if rows[row] < 0:
                rows[row] = context.builder.tensor(tensor.name, tensor.kind, tensor.dtype, tensor.shape)
        return rows

    # Its tables

    def _instructions(self, hlo: Ints, first_tile: int) -> Table:
        builder = self._context.builder
        block = copied(self._program.instructions)
        functions = [builder.activation(name) if name else 0 for name in self._program.activations]
        block["activation"] = np.array(functions, np.uint16)[block["activation"]]
        block["hlo"] = mapped_rows(block["hlo"], hlo)
        block["wait_count"] = block["first_wait"] = 0
        block["signal"] = -1
        for column in TILE_COLUMNS:
            block[column][block[column] >= 0] += first_tile
        return block

    def _dmas(self, hlo: Ints, first_tile: int, tensors: Ints) -> Table:
        program, context = self._program, self._context
        dmas = copied(program.dmas)
        queues = np.array([context.queue(queue) for queue in program.queues] or [0], np.int64)
        dmas["queue"] = queues[dmas["queue"]]
        dmas["hlo"] = mapped_rows(dmas["hlo"], hlo)
        dmas["tile"][dmas["tile"] >= 0] += first_tile
        for row, value in self._operands:
            loaded = (dmas["tensor"] == row) & np.isin(dmas["purpose"], _LOADED)
            dmas["purpose"][loaded & (dmas["source_memory"] == Memory.HBM)] = context.location(value).purpose
        for row, value in self._results:
            stored = (dmas["tensor"] == row) & (dmas["destination_memory"] == Memory.HBM)
            dmas["purpose"][stored] = context.locations[value].store_purpose
        dmas["tensor"] = mapped_rows(dmas["tensor"], tensors)
        dmas["semaphore"], dmas["increment"], dmas["collective"] = -1, 0, -1
        return dmas

    def _now(self, tokens: Ints) -> Ints:
        return np.where(tokens >= 0, tokens + self._first, tokens - self._first_dma)

    # What stands around it

    def _allocate(self) -> dict[Memory, Block]:
        """A range of each on-chip memory that it uses; what is resident there stays out of its way."""
        blocks = {}
        tiles = self._program.tiles
        for memory in _ON_CHIP:
            used = tiles[tiles["memory"] == memory]
            if len(used):
                size = int((used["address"].astype(np.int64) + used["bytes_per_partition"]).max())
                blocks[memory] = _allocate(self._context.allocator(memory), size)
        return blocks

    def _wait_for_operands(self) -> None:
        dmas, builder = self._program.dmas, self._context.builder
        trigger = np.flatnonzero(self._program.instructions["dma"] >= 0)
        tensor = dmas["tensor"][self._program.instructions["dma"][trigger]]
        for row, value in self._operands:
            rows = trigger[tensor == row] + self._first
            for token in self._context.location(value).tokens.values():
                builder.depend(rows, token)

    def _wait_for_memory(self, blocks: Mapping[Memory, Block]) -> None:
        """Hold the first write of each engine to each memory; then hand the range back."""
        context = self._context
        for memory, block in blocks.items():
            for row in self._first_writes(memory):
                context.builder.depend([row + self._first] * len(block.tokens), list(block.tokens.values()))
            if block.size:
                context.allocator(memory).release(block, self._last_uses())

    def _first_writes(self, memory: Memory) -> Iterator[int]:
        program = self._program
        instructions, tiles = program.instructions, program.tiles
        writes = (instructions["destination"] >= 0) & (
            tiles["memory"][np.maximum(instructions["destination"], 0)] == memory
        )
        is_dma = instructions["dma"] >= 0
        writes[is_dma] = program.dmas["destination_memory"][instructions["dma"][is_dma]] == memory
        for engine in np.unique(instructions["engine"]).tolist():
            found = np.flatnonzero(writes & (instructions["engine"] == engine))
            if len(found):
                yield int(found[0])

    def _last_uses(self) -> dict[int, int]:
        """The last instruction of each engine and the last transfer of each queue."""
        instructions = self._program.instructions
        uses = {
            int(engine): int(np.flatnonzero(instructions["engine"] == engine)[-1]) + self._first
            for engine in np.unique(instructions["engine"])
        }
        for queue, row in _last_transfers(self._program, np.ones(len(self._program.dmas), bool)):
            uses[self._stream(queue)] = dma_token(row + self._first_dma)
        return uses

    def _stream(self, queue: int) -> int:
        return ENGINE_COUNT + self._context.queue(self._program.queues[queue])

    def _complete(self, dmas: Table) -> None:
        """The results are there when the last stores to them are; else when the whole call is done."""
        program = self._program
        for row, value in self._results:
            stores = (program.dmas["tensor"] == row) & (program.dmas["destination_memory"] == Memory.HBM)
            tokens = {
                self._stream(queue): dma_token(dma + self._first_dma)
                for queue, dma in _last_transfers(program, stores)
            }
            self._context.complete(value, tokens or self._last_uses())


def _allocate(allocator: Allocator, size: int) -> Block:
    """A range from the allocator; where none is free, the lowest addresses, in turn with their users."""
    try:
        return allocator.allocate(size)
    except OutOfOnChipMemory:
        end = min(size, allocator.capacity)
        return Block(0, 0, allocator.tokens_of(0, end))


def _last_transfers(program: Program, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """(queue, row) of the last chosen transfer of each queue."""
    for queue in np.unique(program.dmas["queue"][chosen]).tolist():
        yield queue, int(np.flatnonzero(chosen & (program.dmas["queue"] == queue))[-1])


def dependencies(program: Program) -> tuple[Ints, Ints]:
    """What a finished Program's waits stand for: (rows, tokens), as `ProgramBuilder.depend` takes them.

    Each semaphore counts what one engine or one queue completes, in order, by ones: the value of a wait is
    the place of the one that it waits for.
    """
    instructions, waits = program.instructions, program.waits
    rows = np.repeat(np.arange(len(instructions)), instructions["wait_count"])
    tokens = np.full(len(waits), -1, np.int64)
    trigger_order = instructions["dma"][instructions["dma"] >= 0].astype(np.int64)
    signalled = program.dmas["semaphore"][trigger_order]
    for semaphore in np.unique(waits["semaphore"]).tolist():
        made = np.flatnonzero(instructions["signal"] == semaphore)
        if not len(made):
            made = -2 - trigger_order[signalled == semaphore]
        chosen = waits["semaphore"] == semaphore
        tokens[chosen] = made[waits["value"][chosen].astype(np.int64) - 1]
    return rows, tokens


__all__ = ["dependencies", "generate_custom_call"]
