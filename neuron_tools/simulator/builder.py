"""ProgramBuilder: makes Programs from dependencies, choosing the semaphores itself.

The compiler, NKI and tests say *what must be complete before what* (`after=`); `finish()` turns every
dependency between engines into as few semaphore waits as order them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Table
from neuron_tools.records.program import (
    DMA_DTYPE,
    INSTRUCTION_DTYPE,
    TILE_DTYPE,
    WAIT_DTYPE,
    Collective,
    DType,
    Engine,
    Flag,
    FrameworkOperation,
    HloOperation,
    Memory,
    Opcode,
    Program,
    Purpose,
    Queue,
    QueueKind,
    Tensor,
    TensorKind,
    peer_semaphore,
)
from neuron_tools.records.rows import copied, joined, taken
from neuron_tools.simulator.errors import ProgramError

_Key = TypeVar("_Key")

ENGINE_COUNT = len(Engine)
"""Streams 0..4 of the dependency kernel are the engines; DMA queue q is stream ENGINE_COUNT + q."""

_BARRIER_BYTES = 64
"""What one physical core writes to tell the other: one descriptor's least."""


def dma_token(dma_row: int) -> int:
    """The token by which `after=` names the completion of a DMA: -2 - dma_row (-1 means nothing)."""
    return -2 - dma_row


def dma_row(token: int) -> int:
    """The row of the DMA table that a token of `dma` or `collective` names."""
    return -2 - token


class _Rows:
    """An append-only table: single rows as tuples, blocks as arrays, joined once at the end."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._dtype = dtype
        self._blocks: list[Table] = []
        self._pending: list[tuple[int, ...]] = []
        self._block_rows = 0

    def __len__(self) -> int:
        return self._block_rows + len(self._pending)

    def append(self, row: tuple[int, ...]) -> int:
        self._pending.append(row)
        return self._block_rows + len(self._pending) - 1

    def extend(self, block: Table) -> int:
        self._flush()
        first = self._block_rows
        self._blocks.append(np.asarray(block, self._dtype))
        self._block_rows += len(block)
        return first

    def table(self) -> Table:
        return copied(self.joined())

    def joined(self) -> Table:
        """All rows without a copy of them, to be read only."""
        self._flush()
        if not self._blocks:
            return np.zeros(0, self._dtype)
        if len(self._blocks) > 1:
            self._blocks = [joined(self._blocks)]
        return self._blocks[0]

    def _flush(self) -> None:
        if self._pending:
            block = np.array(self._pending, self._dtype)
            self._blocks.append(block)
            self._block_rows += len(block)
            self._pending = []


class _Names:
    """Gives each distinct record one row, in order of first use."""

    def __init__(self, first: Iterable[object] = ()) -> None:
        self.rows: dict[object, int] = {}
        for item in first:
            self.row(item)

    def row(self, item: object) -> int:
        return self.rows.setdefault(item, len(self.rows))


class ProgramBuilder:
    """Builds a `Program` by appending; every method that appends returns the row or token to refer to it.

    Tokens: an instruction's token is its row (>= 0); a DMA's is `dma_token(row)` (<= -2), as returned by
    `dma`. `after=[...]` lists tokens that must be *complete* before the instruction starts (-1 entries are
    skipped). Tokens must already exist, so the order of appending is one valid order of execution and no
    deadlock can be built.

    Dependencies between instructions of one engine cost no semaphore: engines issue in order, and the
    simulator holds an instruction until a tile it reads (`source`, `second_source`) has been written by the
    earlier instruction of the same engine. So do name the tiles.

    Example:
        >>> build = ProgramBuilder("copy", target="trn2")
        >>> load = build.queue("qSyncInput0", Engine.SYNC, QueueKind.HARDWARE_DYNAMIC)
        >>> tile = build.tile(Memory.SBUF, address=0, bytes_per_partition=2048)
        >>> loaded = build.dma(load, source_memory=Memory.HBM, destination_memory=Memory.SBUF,
        ...                    bytes=2048 * 128, descriptor_bytes=2048, partitions=128, tile=tile)
        >>> copied = build.instruction(Engine.VECTOR, Opcode.TENSOR_COPY, partitions=128, elements=512,
        ...                            input_dtype=DType.F32, output_dtype=DType.F32,
        ...                            source_memory=Memory.SBUF, destination_memory=Memory.SBUF,
        ...                            source=tile, after=[loaded])
        >>> program = build.finish()

    Large Programs are appended by block: `instructions(block, dmas=...)` and `depend(rows, tokens)` take
    arrays and cost well under a microsecond a row.
    """

    def __init__(self, name: str, target: str = "trn2") -> None:
        self.name = name
        self.target = target
        self._instructions = _Rows(INSTRUCTION_DTYPE)
        self._dmas = _Rows(DMA_DTYPE)
        self._tiles = _Rows(TILE_DTYPE)
        self._queues = _Names()
        self._queue_engines: list[int] = []
        self._activations = _Names([""])
        self._collectives: list[Collective] = []
        self._parts: dict[int, int] = {}
        self._tensors: list[Tensor] = []
        self._hlo: list[HloOperation] = []
        self._framework: list[FrameworkOperation] = []
        self._warnings: list[str] = []
        self._edge_rows: list[int] = []
        self._edge_tokens: list[int] = []
        self._edge_blocks: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self._explicit_waits: list[tuple[int, int, int]] = []
        self._semaphore_count = 0

    # What the program refers to

    @property
    def instruction_count(self) -> int:
        """Rows of the instruction table so far: the row that the next instruction gets."""
        return len(self._instructions)

    @property
    def dma_count(self) -> int:
        """Rows of the DMA table so far."""
        return len(self._dmas)

    @property
    def tile_count(self) -> int:
        """Rows of the tile table so far."""
        return len(self._tiles)

    def queue(self, name: str, engine: Engine, kind: QueueKind = QueueKind.HARDWARE_DYNAMIC) -> int:
        """Row of a DMA queue; the same name, engine and kind give the same row."""
        row = self._queues.row(Queue(name, engine, kind))
        if row == len(self._queue_engines):
            self._queue_engines.append(int(engine))
        return row

    def tensor(self, name: str, kind: TensorKind, dtype: DType, shape: Sequence[int]) -> int:
        """Append an HBM tensor; returns its row."""
        return _appended(self._tensors, Tensor(name, kind, dtype, tuple(shape)))

    def framework(self, operation: FrameworkOperation) -> int:
        """Append a framework operation; returns its row."""
        return _appended(self._framework, operation)

    def hlo(self, operation: HloOperation) -> int:
        """Append an HLO operation; returns its row."""
        return _appended(self._hlo, operation)

    def activation(self, name: str) -> int:
        """Row of an activation function ("" = 0 = none)."""
        return self._activations.row(name)

    def tile(
        self,
        memory: Memory,
        address: int,
        bytes_per_partition: int,
        start_partition: int = 0,
        partitions: int = 128,
        tensor: int = -1,
    ) -> int:
        """Append a tile of SBUF or PSUM; its first and last use are found by `finish`. Returns its row."""
        return self._tiles.append(
            (int(memory), address, bytes_per_partition, start_partition, partitions, tensor, -1, -1)
        )

    def tiles(self, block: Table) -> int:
        """Append rows of TILE_DTYPE; returns the row of the first."""
        return self._tiles.extend(block)

    def warning(self, text: str) -> None:
        """Keep a sentence for the user (repeated sentences once)."""
        if text not in self._warnings:
            self._warnings.append(text)

    def semaphore(self) -> int:
        """Allocate a semaphore for explicit `waits=` and `signal=`."""
        self._semaphore_count += 1
        return self._semaphore_count - 1

    # What the program does

    def instruction(
        self,
        engine: Engine,
        opcode: Opcode,
        *,
        partitions: int = 0,
        columns: int = 0,
        elements: int = 0,
        input_dtype: DType = DType.NONE,
        output_dtype: DType = DType.NONE,
        source_memory: Memory = Memory.NONE,
        destination_memory: Memory = Memory.NONE,
        activation: str = "",
        flags: Flag = Flag.NONE,
        hlo: int = -1,
        source: int = -1,
        second_source: int = -1,
        destination: int = -1,
        parameter: int = -1,
        second_parameter: int = -1,
        open_engines: int = 0,
        after: Iterable[int] = (),
        waits: Iterable[tuple[int, int]] = (),
        signal: int = -1,
        dma: int = -1,
    ) -> int:
        """Append one instruction; returns its row, which is its token.

        The columns are those of INSTRUCTION_DTYPE. `after` are tokens; `waits` are explicit
        (semaphore, value) pairs beside them and `signal` an explicit semaphore.
        """
        function = self._activations.row(activation) if activation else 0
        row = self._instructions.append(
            (
                int(engine), int(input_dtype), int(output_dtype), int(source_memory), int(destination_memory),
                int(opcode), function, int(flags), partitions, columns, elements, dma, hlo, 0, 0, signal,
                source, second_source, destination, parameter, second_parameter, open_engines,
            )
        )  # fmt: skip
        for token in after:
            self._edge_rows.append(row)
            self._edge_tokens.append(token)
        for semaphore, value in waits:
            self._explicit_waits.append((row, semaphore, value))
        return row

    def dma(
        self,
        queue: int,
        *,
        source_memory: Memory,
        destination_memory: Memory,
        bytes: int,
        descriptor_bytes: int,
        partitions: int = 0,
        purpose: Purpose = Purpose.INTERMEDIATE,
        dtype: DType = DType.NONE,
        transpose: bool = False,
        strided: bool = False,
        cast: int = 0,
        tensor: int = -1,
        tile: int = -1,
        hlo: int = -1,
        flags: Flag = Flag.NONE,
        after: Iterable[int] = (),
        waits: Iterable[tuple[int, int]] = (),
        semaphore: int = -1,
    ) -> int:
        """Append a DMA and the DMA_TRIGGER that starts it on its queue's engine; returns the DMA's token.

        `after` holds the trigger (and so all that follows it on that engine) until the tokens are complete.
        """
        descriptors = -(-bytes // descriptor_bytes) if descriptor_bytes > 0 else 0
        row = self._dmas.append(
            (
                queue, int(source_memory), int(destination_memory), int(purpose), int(dtype), int(transpose),
                int(strided), cast, bytes, descriptor_bytes, descriptors, partitions, tensor, tile, hlo,
                semaphore, int(semaphore >= 0), -1,
            )
        )  # fmt: skip
        self.instruction(
            Engine(self._queue_engines[queue]), Opcode.DMA_TRIGGER, flags=flags, hlo=hlo, dma=row,
            after=after, waits=waits,
        )  # fmt: skip
        return dma_token(row)

    def collective(
        self, queue: int, collective: Collective, *, hlo: int = -1, after: Iterable[int] = ()
    ) -> int:
        """Append a rank's part in a collective, on a queue of kind COLLECTIVE; returns its token.

        Args:
            queue: Its collective stream; streams run side by side, each in order.
            collective: What happens, and between whom.
            hlo: Its HLO operation.
            after: What must be complete before this rank joins.
        """
        token = self.dma(
            queue, source_memory=Memory.HBM, destination_memory=Memory.HBM, bytes=collective.byte_count,
            descriptor_bytes=min(collective.byte_count, 1 << 30), dtype=collective.dtype, hlo=hlo,
            after=after,
        )  # fmt: skip
        self.take_part(dma_row(token), collective)
        return token

    def core_barrier(self, queue: int, *, hlo: int = -1, after: Iterable[int] = ()) -> int:
        """Let both physical cores of a logical NeuronCore wait for each other; returns the wait's token.

        Each core's Program tells the other by a transfer, as `nisa.core_barrier` does, and has as many
        barriers as the other's: the first meets the first.

        Args:
            queue: Ring of the transfer; its engine waits.
            hlo: Its HLO operation.
            after: What must be complete before the other core is told.
        """
        self.dma(
            queue, source_memory=Memory.SBUF, destination_memory=Memory.SBUF, bytes=_BARRIER_BYTES,
            descriptor_bytes=_BARRIER_BYTES, partitions=1, hlo=hlo, flags=Flag.CORE_BARRIER, after=after,
        )  # fmt: skip
        engine = Engine(self._queue_engines[queue])
        return self.instruction(engine, Opcode.EVENT_SEMAPHORE, hlo=hlo, flags=Flag.CORE_BARRIER)

    def take_part(self, row: int, collective: Collective) -> None:
        """Make an appended DMA, on a queue of kind COLLECTIVE, a part in a collective."""
        self._collectives.append(collective)
        self._parts[row] = len(self._collectives) - 1

    def instructions(self, block: Table, dmas: Table | None = None) -> int:
        """Append rows of INSTRUCTION_DTYPE; returns the row of the first.

        Args:
            block: (n,) rows; the wait columns are ignored (use `depend`).
            dmas: (m,) rows of DMA_DTYPE that the block starts: column `dma` of the block's DMA_TRIGGER rows
                counts from the start of `dmas`, and is -1 elsewhere. Their tokens are
                `dma_token(first + i)` with `first` = `dma_count` before the call.
        """
        if dmas is not None:
            block = copied(block)
            block["dma"][block["dma"] >= 0] += self._dmas.extend(dmas)
        return self._instructions.extend(block)

    def depend(self, rows: npt.ArrayLike, tokens: npt.ArrayLike) -> None:
        """Hold instruction `rows[i]` until `tokens[i]` is complete; arrays of one shape (or broadcast)."""
        wide_rows, wide_tokens = np.broadcast_arrays(
            np.asarray(rows, dtype=np.int64), np.asarray(tokens, dtype=np.int64)
        )
        self._edge_blocks.append((wide_rows.ravel(), wide_tokens.ravel()))

    def view(self) -> tuple[Table, Table, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Instructions and DMAs appended so far, and what was said to depend on what: (rows, tokens)."""
        return self._instructions.joined(), self._dmas.joined(), self._dependencies()

    def reorder(self, order: npt.NDArray[np.int64]) -> None:
        """Put the instructions into another order: row `i` is then what row `order[i]` was.

        Every instruction must stay behind what it depends on (`finish` looks), and each ring's transfers in
        their order. Rows named before this call mean other instructions afterwards.
        """
        new = np.empty(len(order), np.int64)
        new[order] = np.arange(len(order))
        table = taken(self._instructions.joined(), order)
        self._instructions = _Rows(INSTRUCTION_DTYPE)
        self._instructions.extend(table)
        rows, tokens = self._dependencies()
        self._edge_rows, self._edge_tokens = [], []
        self._edge_blocks = [(new[rows], np.where(tokens >= 0, new[tokens], tokens))]
        self._explicit_waits = [
            (int(new[row]), semaphore, value) for row, semaphore, value in self._explicit_waits
        ]

    def tensor_bytes(self, row: int) -> int:
        """Size of an appended HBM tensor."""
        return self._tensors[row].byte_count

    def remove(self, rows: npt.NDArray[np.int64]) -> None:
        """Take out instructions with the DMAs that they start; who waited for them waits no more.

        Rows and tokens named before this call mean others afterwards. Rows with semaphores of their own, and
        parts in collectives, must not be among them.
        """
        instructions, dmas = self._instructions.joined(), self._dmas.joined()
        kept = np.ones(len(instructions), bool)
        kept[rows] = False
        started = instructions["dma"][rows]
        kept_dmas = np.ones(len(dmas), bool)
        kept_dmas[started[started >= 0]] = False
        new, new_dmas = np.cumsum(kept) - 1, np.cumsum(kept_dmas) - 1
        self._keep_rows(
            taken(instructions, np.flatnonzero(kept)), taken(dmas, np.flatnonzero(kept_dmas)), new_dmas
        )
        waiting, tokens = self._dependencies()
        is_dma = tokens < -1
        there = kept[waiting]
        there[is_dma] &= kept_dmas[-2 - tokens[is_dma]]
        there[tokens >= 0] &= kept[tokens[tokens >= 0]]
        waiting, tokens, is_dma = waiting[there], tokens[there].copy(), is_dma[there]
        tokens[is_dma] = -2 - new_dmas[-2 - tokens[is_dma]]
        tokens[tokens >= 0] = new[tokens[tokens >= 0]]
        self._edge_blocks = [(new[waiting], tokens)]
        self._explicit_waits = [(int(new[row]), sem, value) for row, sem, value in self._explicit_waits]
        self._parts = {int(new_dmas[row]): part for row, part in self._parts.items()}

    def _keep_rows(self, instructions: Table, dmas: Table, new_dmas: npt.NDArray[np.int64]) -> None:
        """Let the tables be these; DMAs are named as `new_dmas` says."""
        starts = instructions["dma"] >= 0
        instructions["dma"][starts] = new_dmas[instructions["dma"][starts]]
        self._instructions, self._dmas = _Rows(INSTRUCTION_DTYPE), _Rows(DMA_DTYPE)
        self._instructions.extend(instructions)
        self._dmas.extend(dmas)

    def _dependencies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if self._edge_rows or len(self._edge_blocks) != 1:
            blocks = [self._edges_so_far()]
            self._edge_rows, self._edge_tokens, self._edge_blocks = [], [], blocks
        return self._edge_blocks[0]

    def _edges_so_far(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(rows, tokens) so far."""
        rows, tokens = np.array(self._edge_rows, np.int64), np.array(self._edge_tokens, np.int64)
        return (
            np.concatenate([rows, *(block[0] for block in self._edge_blocks)]),
            np.concatenate([tokens, *(block[1] for block in self._edge_blocks)]),
        )

    def finish(self) -> Program:
        """The Program, with dependencies turned into semaphores.

        Each engine and each DMA queue completes in order, so one counting semaphore per producing stream
        is enough; a wait that an earlier wait of the same engine already implies is left out.

        Raises:
            ProgramError: A dependency names a row that does not come earlier, or a producer has a
                semaphore of its own.
        """
        instructions = self._instructions.table()
        dmas = self._dmas.table()
        if self._parts:
            dmas["collective"][list(self._parts)] = list(self._parts.values())
        tiles = self._tiles.table()
        self._meet_other_core(instructions, dmas)
        waits, semaphores = self._synchronise(instructions, dmas)
        self._note_tile_uses(instructions, dmas, tiles)
        return Program(
            name=self.name,
            target=self.target,
            instructions=instructions,
            waits=waits,
            dmas=dmas,
            tiles=tiles,
            semaphore_count=semaphores,
            queues=_keys(self._queues, Queue),
            tensors=tuple(self._tensors),
            hlo=tuple(self._hlo),
            framework=tuple(self._framework),
            activations=_keys(self._activations, str),
            collectives=tuple(self._collectives),
            warnings=tuple(self._warnings),
            metadata={},
        )

    # Dependencies to semaphores

    def _meet_other_core(self, instructions: Table, dmas: Table) -> None:
        """Give the barriers a semaphore: what this core counts up, the other one waits for."""
        rows = np.flatnonzero(instructions["flags"] & Flag.CORE_BARRIER)
        if not len(rows):
            return
        semaphore, told = self.semaphore(), instructions["dma"][rows]
        dmas["semaphore"][told[told >= 0]] = semaphore
        dmas["increment"][told[told >= 0]] = 1
        for count, row in enumerate(rows[told < 0].tolist(), 1):
            self._explicit_waits.append((row, peer_semaphore(semaphore), count))

    def _synchronise(self, instructions: Table, dmas: Table) -> tuple[Table, int]:
        rows, producers = self._edges(instructions, dmas)
        rows, producers = self._needed_waits(instructions, dmas, rows, producers)
        semaphore, value, count = self._allocate(instructions, dmas, producers)
        explicit = np.array(self._explicit_waits, np.int64).reshape(-1, 3)
        wait_rows = np.concatenate([explicit[:, 0], rows])
        waits = np.zeros(len(wait_rows), WAIT_DTYPE)
        waits["semaphore"] = np.concatenate([explicit[:, 1], semaphore])
        waits["value"] = np.concatenate([explicit[:, 2], value])
        order = np.argsort(wait_rows, kind="stable")
        per_row = np.bincount(wait_rows, minlength=len(instructions))
        instructions["wait_count"] = per_row
        instructions["first_wait"] = np.cumsum(per_row) - per_row
        return taken(waits, order), count

    def _edges(self, instructions: Table, dmas: Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Dependencies between different streams, by row: (rows, producers); producer >= n is DMA p - n."""
        rows, tokens = self._dependencies()
        count = len(instructions)
        if len(rows) and not 0 <= rows.min() <= rows.max() < count:
            raise ProgramError(
                f"Program {self.name!r}: a dependency names an instruction that does not exist."
            )
        producers = np.where(tokens >= 0, tokens, count - 2 - tokens)
        bad = (producers >= count + len(dmas)) | ((tokens >= 0) & (tokens >= rows))
        if bad.any():
            raise ProgramError(
                f"Program {self.name!r}: instruction {rows[bad][0]} depends on token {tokens[bad][0]}, "
                "which does not come before it; append the producer first."
            )
        engine = np.ascontiguousarray(instructions["engine"])
        other = np.ones(len(rows), bool)
        local = tokens >= 0
        other[local] = engine[rows[local]] != engine[tokens[local]]
        other &= tokens != -1
        rows, producers = rows[other], producers[other]
        if len(rows) and np.any(rows[1:] < rows[:-1]):
            order = np.argsort(rows, kind="stable")
            rows, producers = rows[order], producers[order]
        return rows, producers

    def _needed_waits(
        self,
        instructions: Table,
        dmas: Table,
        rows: npt.NDArray[np.int64],
        producers: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if not len(rows):
            return rows, producers
        from neuron_tools.simulator.dependency_kernel import Producers, minimal_waits

        count = len(instructions)
        needed = np.zeros(count + len(dmas), bool)
        needed[producers] = True
        streams = ENGINE_COUNT + len(self._queue_engines)
        slots = int(needed.sum())
        engines = np.ascontiguousarray(instructions["engine"])
        kept, wait_rows, wait_producers = minimal_waits(
            engines,
            np.ascontiguousarray(instructions["dma"]),
            np.searchsorted(rows, np.arange(count + 1)),
            producers,
            Producers(
                stream=np.concatenate([engines, dmas["queue"].astype(np.int32) + ENGINE_COUNT]).astype(
                    np.int32
                ),
                slot=np.where(needed, np.cumsum(needed) - 1, -1),
                position=np.zeros(slots, np.int32),
                snapshot=np.zeros((slots, streams), np.int32),
            ),
        )
        if kept < 0:
            raise ProgramError(
                f"Program {self.name!r}: instruction {-1 - kept} depends on a DMA that is not triggered "
                "before it; append the DMA first."
            )
        return wait_rows[:kept], wait_producers[:kept]

    def _allocate(
        self, instructions: Table, dmas: Table, producers: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        """One counter per producing stream; sets `signal`, `semaphore` and `increment` of the producers."""
        count = len(instructions)
        unique, inverse = np.unique(producers, return_inverse=True)
        is_dma = unique >= count
        signals, semaphores = instructions["signal"], dmas["semaphore"]
        own = np.concatenate([signals[unique[~is_dma]], semaphores[unique[is_dma] - count]])
        if np.any(own >= 0):
            raise ProgramError(
                f"Program {self.name!r}: a row with a semaphore of its own is also named by `after=`; "
                "use one of the two."
            )
        stream = np.empty(len(unique), np.int64)
        stream[~is_dma] = instructions["engine"][unique[~is_dma]]
        stream[is_dma] = ENGINE_COUNT + dmas["queue"][unique[is_dma] - count].astype(np.int64)
        order_key = self._completion_order(instructions, unique, is_dma, count)
        order = np.lexsort((order_key, stream))
        streams, first, lengths = np.unique(stream[order], return_index=True, return_counts=True)
        rank = np.empty(len(unique), np.int64)
        rank[order] = np.arange(len(unique)) - np.repeat(first, lengths) + 1
        semaphore = self._semaphore_count + np.searchsorted(streams, stream)
        signals[unique[~is_dma]] = semaphore[~is_dma]
        semaphores[unique[is_dma] - count] = semaphore[is_dma]
        dmas["increment"][unique[is_dma] - count] = 1
        return semaphore[inverse], rank[inverse], self._semaphore_count + len(streams)

    @staticmethod
    def _completion_order(
        instructions: Table, unique: npt.NDArray[np.int64], is_dma: npt.NDArray[np.bool_], count: int
    ) -> npt.NDArray[np.int64]:
        """Row by which producers of one stream complete: a DMA completes in the order of its trigger."""
        order_key: npt.NDArray[np.int64] = unique.copy()
        if is_dma.any():
            trigger_rows = np.flatnonzero(instructions["dma"] >= 0)
            trigger_of = np.zeros(int(instructions["dma"].max()) + 1, np.int64)
            trigger_of[instructions["dma"][trigger_rows]] = trigger_rows
            order_key[is_dma] = trigger_of[unique[is_dma] - count]
        return order_key

    @staticmethod
    def _note_tile_uses(instructions: Table, dmas: Table, tiles: Table) -> None:
        if not len(tiles):
            return
        from neuron_tools.simulator.dependency_kernel import tile_uses

        source, second, destination, dma = (
            np.ascontiguousarray(instructions[name])
            for name in ("source", "second_source", "destination", "dma")
        )
        tiles["first_use"], tiles["last_use"] = tile_uses(
            source, second, destination, dma, np.ascontiguousarray(dmas["tile"]), len(tiles)
        )


def _appended(rows: list[_Key], row: _Key) -> int:
    rows.append(row)
    return len(rows) - 1


def _keys(names: _Names, kind: type[_Key]) -> tuple[_Key, ...]:
    return tuple(name for name in names.rows if isinstance(name, kind))


__all__ = ["ENGINE_COUNT", "ProgramBuilder", "dma_row", "dma_token"]
