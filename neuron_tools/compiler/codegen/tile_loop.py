"""A loop over tiles: the body is written once, all iterations are emitted at once as arrays.

The body names *slots* (tile buffers) that its steps read and write. From that the loop derives
    * stages: each time data goes on to another engine the pipeline gains a stage, and step `s` of
      iteration `i` is issued in time slot `i + stage(s)`, so that engines work on different iterations;
    * how many buffers each slot needs for that (at least two where a DMA is involved);
    * the dependencies: a reader after its writer, a writer after the readers of the buffer's last content.
A slot may change its content less often than every iteration (`version`), e.g. a resident operand block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.compiler.allocate import Block, OutOfOnChipMemory, latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.loop_stages import LONG_HELD_ITERATIONS, NEVER, Pipelining, StagedLoop
from neuron_tools.compiler.codegen.rows import fill_compute, fill_transfers
from neuron_tools.compiler.codegen.slot import PerIteration, Slot, Step, Transfer
from neuron_tools.records.program import (
    INSTRUCTION_DTYPE,
    DType,
    Engine,
    Flag,
    Memory,
    Opcode,
    empty_table,
)
from neuron_tools.simulator.builder import ENGINE_COUNT, dma_token

_ATTEMPTS = (
    (Pipelining.ENGINES, True, NEVER),
    (Pipelining.ENGINES, False, NEVER),
    (Pipelining.ENGINES, False, LONG_HELD_ITERATIONS),
    (Pipelining.UNITS, True, NEVER),
    (Pipelining.UNITS, False, NEVER),
    (Pipelining.UNITS, False, LONG_HELD_ITERATIONS),
    (Pipelining.ENGINES, True, 1),
    (Pipelining.ENGINES, False, 1),
    (Pipelining.UNITS, True, 1),
    (Pipelining.UNITS, False, 1),
    (Pipelining.NONE, True, NEVER),
    (Pipelining.NONE, False, NEVER),
)
"""(what overlaps, with extra buffers, for how many iterations a PSUM content must stay to have a buffer to
itself): best first."""
FILLED = 2
"""What a buffer takes for each byte of a weight in it, at most: a row that all partitions read takes more."""


class TileLoop(StagedLoop):
    """See the module's text. Slots and steps are declared first, then `emit` is called once."""

    def __init__(self, context: Context, iterations: int, hlo: int) -> None:
        self.iterations = iterations
        self._context = context
        self._hlo = hlo
        super().__init__()
        self._every = np.arange(iterations, dtype=np.int64)
        self._once = np.zeros(iterations, np.int64)

    def slot(
        self,
        name: str,
        bytes_per_partition: int,
        dtype: DType,
        *,
        memory: Memory = Memory.SBUF,
        partitions: int = 128,
        version: Ints | None = None,
        stationary: bool = False,
        extra_buffers: int = 0,
        least_buffers: int = 0,
        read_first: bool = False,
        keep: bool = False,
        whole: bool = False,
    ) -> Slot:
        """Declare a tile buffer.

        Args:
            stationary: Written once (or accumulated) for the whole loop.
            least_buffers: Contents that must be there at one time, as later iterations read them again.
            read_first: No buffer for the next content while the one before is read: reading is short.
            keep: Its memory is not released at the end.
            whole: Every content has a buffer of its own.
        """
        content = self._once if stationary else self._every if version is None else version
        slot = Slot(
            name, memory, bytes_per_partition, partitions, dtype, content,
            stationary=stationary, extra_buffers=extra_buffers, least_buffers=least_buffers, keep=keep,
            read_first=read_first, whole=whole,
        )  # fmt: skip
        self._slots.append(slot)
        return slot

    def given(self, slot: Slot) -> None:
        """Use a slot whose content exists already (its `given` tokens tell since when)."""
        self._slots.append(slot)

    def first_of(self, version: Ints) -> npt.NDArray[np.bool_]:
        """(iterations,) True where a content number appears first: when a slot of that version is loaded."""
        return np.asarray(np.diff(version, prepend=-1) != 0)

    def step(
        self,
        engine: Engine,
        opcode: Opcode,
        *,
        reads: Sequence[Slot] = (),
        writes: Sequence[Slot] = (),
        partitions: PerIteration = 128,
        elements: PerIteration = 0,
        columns: PerIteration = 0,
        activation: str = "",
        flags: Flag = Flag.NONE,
        active: npt.NDArray[np.bool_] | None = None,
        after: Mapping[int, int] | Sequence[int] = (),
        transfer: Transfer | None = None,
        accumulates: bool = False,
        hlo: int = -1,
        input_dtype: DType | None = None,
        output_dtype: DType | None = None,
        stage: int | None = None,
        in_turn: bool = False,
        opens_stage: bool = True,
    ) -> Step:
        """Declare the next step of the body.

        Args:
            partitions, elements, columns: One number, or one per iteration.
            active: (iterations,) where the step runs; None = everywhere.
            after: Tokens from before the loop that must be complete first.
            accumulates: The step adds to what the written slots hold (no write-after-read order).
            stage: Fixes the pipeline stage, for slots that are filled several times per iteration.
            in_turn: Other iterations have this step on other engines.
            opens_stage: Off for what runs once between two passes: nothing else could run beside it.
        """
        tokens = tuple(after.values()) if isinstance(after, Mapping) else tuple(after)
        step = Step(
            engine, opcode, tuple(reads), tuple(writes), partitions, elements, columns,
            input_dtype if input_dtype is not None else reads[0].dtype if reads else DType.NONE,
            output_dtype if output_dtype is not None else writes[0].dtype if writes else DType.NONE,
            self._context.builder.activation(activation) if activation else 0,
            flags, active, tokens, transfer, accumulates, hlo if hlo >= 0 else self._hlo, stage, in_turn,
            opens_stage,
        )  # fmt: skip
        self._steps.append(step)
        return step

    def load(self, slot: Slot, transfer: Transfer, **options: Any) -> Step:
        """A DMA into a slot."""
        engine = self._context.queue_engine(transfer.queue)
        return self.step(engine, Opcode.DMA_TRIGGER, writes=(slot,), transfer=transfer, **options)

    def store(self, slot: Slot, transfer: Transfer, **options: Any) -> Step:
        """A DMA out of a slot."""
        engine = self._context.queue_engine(transfer.queue)
        return self.step(engine, Opcode.DMA_TRIGGER, reads=(slot,), transfer=transfer, **options)

    def footprint(self) -> int:
        """SBUF bytes per partition that `emit` asks for where there is room."""
        self._plan(Pipelining.ENGINES)
        return sum(
            slot.buffers * slot.bytes_per_partition
            for slot in self._slots
            if slot.memory is Memory.SBUF and slot.given is None
        )

    def emit(self) -> None:
        """Allocate, order and append all iterations.

        Raises:
            OutOfOnChipMemory: Not even unpipelined single buffers fit.
        """
        if not self._steps or not self.iterations:
            return
        self._allocate()
        self._order()
        self._connect()
        self._release()

    # Memory

    def _allocate(self) -> None:
        self._place_weights()
        must_pipeline = any(step.pinned_stage for step in self._steps)
        for pipelining, extra, alone_from in _ATTEMPTS:
            if must_pipeline and pipelining is Pipelining.NONE:
                continue
            self._prefetch, self._ahead, self._alone_from = extra, extra, alone_from
            self._plan(pipelining)
            if self._try_allocate():
                return
        raise OutOfOnChipMemory("The tiles of one loop do not fit on the chip; use smaller tiles.")

    def _try_allocate(self) -> bool:
        taken: list[tuple[Slot, Block]] = []
        for slot in self._slots:
            if slot.given is not None or not slot.buffers or slot.stays:
                continue
            allocator = self._context.allocator(slot.memory)
            slot.blocks = []
            for _ in range(slot.buffers):
                try:
                    block = allocator.allocate(slot.bytes_per_partition, at_end=slot.whole)
                except OutOfOnChipMemory:
                    for owner, held in taken:
                        self._context.allocator(owner.memory).release(held, {})
                    return False
                slot.blocks.append(block)
                taken.append((slot, block))
        staying = (slot for slot in self._slots if slot.stays)
        for slot in dict.fromkeys((*(slot for slot, _ in taken), *staying)):
            slot.first_tile = self._context.tiles(slot)
        return True

    def _place_weights(self) -> None:
        """Let weights stay from one execution to the next, piece by piece, as far as there is room."""
        loads = [(step, step.loaded_weight) for step in self._steps if step.loaded_weight >= 0]
        loaded: Counter[int] = Counter()
        for step, tensor in loads:
            loaded[tensor] += step.bytes
        for step, tensor in loads:
            step.is_left_out = self._stays(step, self._context.builder.tensor_bytes(tensor), loaded[tensor])

    def _stays(self, step: Step, tensor_bytes: int, loaded_bytes: int) -> bool:
        (slot,), weights = step.writes, self._context.weights
        room = slot.bytes_per_partition * slot.partitions * slot.contents
        if loaded_bytes > tensor_bytes or room > FILLED * step.bytes:
            return weights.keep_rows(step.bytes * min(loaded_bytes, tensor_bytes) // loaded_bytes)
        blocks = weights.place(slot.bytes_per_partition, slot.contents)
        if blocks is not None:
            slot.blocks = blocks
            slot.whole = slot.keep = slot.stays = True
        return blocks is not None

    # Rows

    def _order(self) -> None:
        """Place every (step, iteration) in the instruction table and fill it."""
        count, iterations = len(self._steps), self.iterations
        active = np.ones((count, iterations), bool)
        for index, step in enumerate(self._steps):
            if step.active is not None:
                active[index] = step.active
        stages = np.array([step.stage for step in self._steps], np.int64)
        time = stages[:, None] + self._every
        step_index, iteration = np.nonzero(active)
        order = np.lexsort((step_index, -stages[step_index], time[step_index, iteration]))
        step_index, iteration = step_index[order], iteration[order]
        place = np.full((count, iterations), -1, np.int64)
        place[step_index, iteration] = np.arange(len(order))
        block = empty_table(INSTRUCTION_DTYPE, len(order))
        dmas = self._fill(block, place)
        self._append(block, dmas, place)

    def _fill(self, block: npt.NDArray[np.void], place: Ints) -> npt.NDArray[np.void]:
        transfers: list[tuple[Step, Ints, Ints]] = []
        for step, row_places in zip(self._steps, place):
            iterations = np.flatnonzero(row_places >= 0)
            places = row_places[iterations]
            block["engine"][places] = step.engine
            block["opcode"][places] = step.opcode
            block["hlo"][places] = step.hlo
            if step.flags:
                block["flags"][places] = step.flags
            if step.transfer is not None:
                transfers.append((step, iterations, places))
                continue
            fill_compute(block, step, iterations, places)
        return fill_transfers(block, transfers)

    def _append(self, block: npt.NDArray[np.void], dmas: npt.NDArray[np.void], place: Ints) -> None:
        builder = self._context.builder
        first_dma = builder.dma_count
        local_dma = block["dma"].astype(np.int64)
        first = builder.instructions(block, dmas)
        for step, places in zip(self._steps, place):
            step.rows = np.where(places >= 0, places + first, -1)
            step.tokens = step.rows
            if step.transfer is not None:
                step.tokens = np.where(places >= 0, dma_token(0) - (first_dma + local_dma[places]), -1)
            if step.is_left_out:
                self._context.weights.leave_out(step.rows[step.rows >= 0])

    # Dependencies

    def _connect(self) -> None:
        for step in self._steps:
            live = np.flatnonzero(step.rows >= 0)
            for token in step.after:
                self._context.builder.depend(step.rows[live[:1]], token)
        for slot in self._slots:
            self._connect_slot(slot)

    def _connect_slot(self, slot: Slot) -> None:
        """Order all steps that touch a slot, by content number."""
        writers: list[Ints] = []  # (versions,) token of each write so far, -1 = none
        readers: list[Ints] = []
        rotation: list[tuple[Ints, Ints]] = []
        for step in self._steps:
            if slot not in step.reads and slot not in step.writes:
                continue
            iterations = np.flatnonzero(step.rows >= 0)
            rows, versions = step.rows[iterations], slot.version[iterations]
            if slot.given is not None:
                for tokens in np.atleast_2d(slot.given):
                    self._context.builder.depend(rows, tokens[versions])
            joins = step.accumulates and slot not in step.reads
            for tokens in () if joins else writers:
                self._depend_earlier(rows, tokens[versions])
            if slot in step.writes:
                for tokens in () if joins else readers:
                    self._depend_earlier(rows, tokens[versions])
                rotation.append((rows, versions))
            last = self._last_tokens(slot, step, iterations, versions)
            (writers if slot in step.writes else readers).append(last)
        if slot.given is None:
            self._connect_rotation(slot, rotation, [*writers, *readers])

    def _depend_earlier(self, rows: Ints, tokens: Ints) -> None:
        """Order rows after tokens; an accumulation's own later writes are no predecessors."""
        earlier = (tokens < -1) | ((tokens >= 0) & (tokens < rows))
        self._context.builder.depend(rows[earlier], tokens[earlier])

    def _last_tokens(self, slot: Slot, step: Step, iterations: Ints, versions: Ints) -> Ints:
        last = np.full(int(slot.version.max()) + 1, -1, np.int64)
        last[versions] = step.tokens[iterations]
        return last

    def _connect_rotation(
        self, slot: Slot, writes: Sequence[tuple[Ints, Ints]], touches: Sequence[Ints]
    ) -> None:
        for rows, versions in writes:
            if not len(rows):
                continue
            first = np.diff(versions, prepend=-1) != 0
            new = rows[first]
            buffer_of = versions[first]
            fresh = buffer_of < slot.buffers
            for row, version in zip(new[fresh].tolist(), buffer_of[fresh].tolist()):
                for token in slot.blocks[version].tokens.values():
                    self._context.builder.depend([row], token)
            reused = ~fresh
            for tokens in touches:
                self._context.builder.depend(new[reused], tokens[buffer_of[reused] - slot.buffers])

    def _release(self) -> None:
        for slot in self._slots:
            if slot.given is not None or slot.keep:
                continue
            tokens = self.last_uses(slot)
            for block in slot.blocks:
                self._context.allocator(slot.memory).release(block, tokens)

    def last_uses(self, slot: Slot) -> dict[int, int]:
        """Stream -> token of the last row that touches a slot."""
        tokens: dict[int, int] = {}
        for step in self._steps:
            if slot in step.reads or slot in step.writes:
                tokens = latest(tokens, self.completion(step))
        return tokens

    def last_writes(self, slot: Slot) -> Ints:
        """(steps, contents) token of each step's last write of each content; -1 where it has none."""
        written = []
        for step in self._steps:
            if slot in step.writes:
                live = np.flatnonzero(step.rows >= 0)
                written.append(self._last_tokens(slot, step, live, slot.version[live]))
        return np.array(written, np.int64)

    def stored(self) -> dict[int, int]:
        """Stream -> token of the last store; everything written to HBM is there after these."""
        tokens: dict[int, int] = {}
        for step in self._steps:
            if step.transfer is not None and step.transfer.destination_memory is Memory.HBM:
                tokens = latest(tokens, self.completion(step))
        return tokens

    def completion(self, step: Step) -> dict[int, int]:
        """Stream -> token of a step's last iteration."""
        done = step.tokens[step.rows >= 0]
        if not len(done):
            return {}
        if step.transfer is None:
            return {int(step.engine): int(done.max())}
        return {ENGINE_COUNT + step.transfer.queue: int(done.min())}
