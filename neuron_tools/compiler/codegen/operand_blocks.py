"""Operand blocks of a product in SBUF, with the contraction on partitions: loaded, or loaded and turned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.joined_batches import FULL_RATE_BYTES, Joined, JoinedBatches
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.operands import Operand
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.frozen import frozen
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

RAW_TILES = 2
"""Tiles of an operand that is turned on the Tensor engine, in turn: one is loaded while one is turned."""
TURNING_BANKS = 2
"""PSUM banks that turned blocks pass through, in turn."""
LOAD_BYTES = 1 << 20
"""Size of one operand load: large enough to hide its latency, small enough for work to start early."""
PREFETCHED = 2
"""Blocks loaded ahead, beyond one, where every block is used once."""


@frozen
class Blocking:
    """Loop structure: what one iteration covers."""

    row_tiles: int  # stationary tiles of 128 rows
    column_tiles: int  # moving tiles of up to 512 columns
    depth_tiles: int  # contraction tiles of 128
    rows_loaded: int  # row tiles loaded together
    held_rows: int = 0  # row tiles whose sums stay in SBUF while the contraction comes in parts


class OperandBlocks(JoinedBatches):
    """Declares the loads of both operands; a product that extends it sets the attributes below.

    Attributes are those of `Matmul`: sizes, blocking and the (iterations,) indices of its loop.
    """

    _left: Operand
    _right: Operand
    _blocking: Blocking
    _row_tile: int
    _moving: int
    _depth_tiles: int
    _chunks: int
    _row_blocks: int
    _chunk: Ints
    _row_block: Ints
    _column_block: Ints
    _read_residents: list[tuple[Resident, Slot]]

    @property
    def _streams(self) -> bool:
        raise NotImplementedError

    def _depth(self, tile: int) -> Ints:
        """(iterations,) contraction rows in a depth tile."""
        first = (self._chunk * self._blocking.depth_tiles + tile) * self._tile
        return np.clip(self._sizes.depth - first, 0, self._tile)

    def _stationary(self) -> list[Slot]:
        """Slots that hold the left operand's block, one per depth tile (several may share a slot)."""
        blocking = self._blocking
        if self._left.resident is not None:
            return self._from_sbuf(self._left.resident)
        if self._joined is not None and self._joined.along_depth:
            return self._diagonal(self._joined)
        if self._streams:
            rows = np.full(len(self._batch), self._sizes.rows, np.int64)
            return self._whole(self._left, content_version(self._batch), rows)
        per_load = max(blocking.rows_loaded // blocking.row_tiles, 1)
        super_block = self._row_block // per_load
        keys = [self._batch, super_block, self._chunk]
        if self._row_blocks > per_load or self._chunks > 1:
            keys.append(self._column_block)
        version = content_version(*keys)
        loaded = per_load * blocking.row_tiles
        rows = np.clip(self._sizes.rows - super_block * loaded * self._row_tile, 0, loaded * self._row_tile)
        return self._block(self._left, version, rows, loaded * self._row_tile)

    def _moving_block(self) -> list[Slot]:
        keys = [self._batch, self._column_block, self._chunk]
        if self._chunks > 1:
            keys.append(self._row_block // max(1, self._blocking.held_rows))
        width = self._blocking.column_tiles * self._moving
        columns = np.clip(self._sizes.columns - self._column_block * width, 0, width)
        return self._block(self._right, content_version(*keys), columns, min(width, self._sizes.columns))

    def _block(self, operand: Operand, version: Ints, free: Ints, width: int) -> list[Slot]:
        """Load an operand block, contraction on partitions, in pieces of a few depth tiles each.

        `free` (iterations,) is how many free elements the block has, `width` the most it may have.
        """
        if operand.method == "tensor":
            return self._turned_block(operand, version, free, width)
        item = operand.dtype.byte_count
        tile_bytes = max(1, width * item * self._tile)
        together = int(max(1, min(self._blocking.depth_tiles, LOAD_BYTES // tile_bytes)))
        ahead = PREFETCHED if self._sizes.batch > 1 or self._streams else 0
        slots: list[Slot] = []
        for start in range(0, self._blocking.depth_tiles, together):
            tiles = min(together, self._blocking.depth_tiles - start)
            slot = self._loop.slot(
                "operand", tiles * width * item, operand.dtype, version=version, extra_buffers=ahead
            )
            depth = np.asarray(sum(self._depth(start + tile) for tile in range(tiles)))
            self._load(operand, slot, depth, tiles, free)
            slots += [slot] * tiles
        return slots

    def _whole(self, operand: Operand, version: Ints, free: Ints) -> list[Slot]:
        """All of an operand's contraction in one slot, loaded once."""
        size = self._depth_tiles * int(free.max()) * operand.dtype.byte_count
        slot = self._loop.slot("operand", size, operand.dtype, version=version)
        self._load(operand, slot, np.full(len(free), self._sizes.depth, np.int64), self._depth_tiles, free)
        return [slot] * self._blocking.depth_tiles

    def _diagonal(self, joined: Joined) -> list[Slot]:
        """Rows of joined batches, each beside its own part of the contraction."""
        version = content_version(self._batch)
        size = self._depth_tiles * joined.rows * self._left.dtype.byte_count
        slot = self._loop.slot("rows", size, self._left.dtype, version=version, extra_buffers=1)
        every = np.ones(len(version), np.int64)
        self._load(self._left, slot, self._sizes.depth * every, self._depth_tiles, joined.rows * every)
        return [self._on_diagonal(slot, version)] * self._blocking.depth_tiles

    def _location(self, operand: Operand) -> Location:
        return operand.turned_copy or self._context.location(operand.root)

    def _load(self, operand: Operand, slot: Slot, depth: Ints, tiles: int, free: Ints) -> None:
        active = self._loop.first_of(slot.version) & (depth > 0)
        if operand.root < 0:
            self._loop.step(
                Engine.GPSIMD,
                Opcode.MEMSET,
                writes=(slot,),
                partitions=self._tile,
                elements=free * tiles,
                active=active,
            )
            return
        if operand.is_repeated:
            self._spread(operand, slot, np.minimum(depth, self._tile), free * tiles, active)
            return
        location = self._location(operand)
        slot.tensor = location.tensor
        turned = operand.method == "dma"
        run = operand.run
        if operand.is_vector and operand.turned:
            run = max(1, self._sizes.depth // self._tile)
        else:
            # Longer rows move no faster, and as fewer pieces than there are DMA engines.
            most = FULL_RATE_BYTES // location.dtype.byte_count if turned else self._together(free, tiles)
            run = min(run, most)
        transfer = location.load(
            self._context.load_queue(location),
            np.maximum(depth * free, 1),
            run,
            np.minimum(depth, self._tile),
            transpose=turned,
            strided=not turned and run < operand.run and not operand.is_tiled,
        )
        self._loop.load(slot, transfer, active=active, after=location.tokens)

    def _together(self, free: Ints, tiles: int) -> int:
        """Elements of a partition that a load of so many tiles of the contraction can bring in one piece."""
        return int(free.max())

    def _spread(self, operand: Operand, slot: Slot, partitions: Ints, elements: Ints, active: Bools) -> None:
        """Fill a slot with an operand's one element, which is loaded once, to all partitions."""
        location = self._location(operand)
        column = self._loop.slot("number", operand.dtype.byte_count, operand.dtype, stationary=True)
        column.tensor = location.tensor
        transfer = location.load(self._context.load_queue(location), self._tile, 1, self._tile)
        first = np.arange(len(self._batch)) == 0
        self._loop.load(column, transfer, active=first, after=location.tokens)
        self._loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(column,), writes=(slot,), active=active,
                        partitions=np.maximum(partitions, 1), elements=elements)  # fmt: skip

    def _turned_block(self, operand: Operand, version: Ints, free: Ints, width: int) -> list[Slot]:
        """Load blocks as in memory (free elements on partitions) and turn them on the Tensor engine."""
        depth_tiles, item = self._blocking.depth_tiles, operand.dtype.byte_count
        result = self._loop.slot("turned", depth_tiles * width * item, operand.dtype, version=version)
        first = self._loop.first_of(version)
        chunk_depth = np.clip(
            self._sizes.depth - self._chunk * depth_tiles * self._tile, 0, depth_tiles * self._tile
        )
        raws = [
            self._loop.slot(
                "as in memory",
                depth_tiles * self._tile * item,
                operand.dtype,
                version=version,
                extra_buffers=1,
            )
            for _ in range(min(RAW_TILES, -(-width // self._tile)))
        ]
        banks = [self._psum("turning", version) for _ in range(TURNING_BANKS)]
        for tile in range(-(-width // self._tile)):
            rows = np.clip(free - tile * self._tile, 0, self._tile)
            active = first & (rows > 0)
            raw = raws[tile % len(raws)]
            self._load_raw(operand, raw, rows, chunk_depth, active)
            self._turn(raw, result, banks, rows, active, [self._depth(tile) for tile in range(depth_tiles)])
        return [result] * depth_tiles

    def _from_sbuf(self, resident: Resident) -> list[Slot]:
        """The left operand's rows, which are in SBUF, turned on the Tensor engine: all of the contraction."""
        blocking, every = self._blocking, np.ones(len(self._batch), np.int64)
        together = max(blocking.rows_loaded // blocking.row_tiles, 1) * blocking.row_tiles
        block = self._row_block * blocking.row_tiles // together
        keys = [block] if self._row_blocks * blocking.row_tiles <= together else [block, self._column_block]
        version = content_version(*keys)
        depths = [
            np.minimum(self._tile, self._sizes.depth - start) * every
            for start in range(0, self._sizes.depth, self._tile)
        ]
        size = len(depths) * min(together * self._row_tile, self._sizes.rows) * self._left.dtype.byte_count
        result = self._loop.slot("turned", size, self._left.dtype, version=version)
        banks = [self._psum("turning", version) for _ in range(TURNING_BANKS)]
        for tile in range(together):
            place = block * together + tile
            rows = np.clip(self._sizes.rows - place * self._row_tile, 0, self._row_tile)
            raw = resident.read(np.minimum(place, len(resident.tiles) - 1))
            self._loop.given(raw)
            self._read_residents.append((resident, raw))
            self._turn(raw, result, banks, rows, self._loop.first_of(version) & (rows > 0), depths)
        return [result] * blocking.depth_tiles

    def _load_raw(self, operand: Operand, raw: Slot, rows: Ints, depth: Ints, active: Bools) -> None:
        if operand.root < 0:
            self._loop.step(
                Engine.GPSIMD,
                Opcode.MEMSET,
                writes=(raw,),
                partitions=rows,
                elements=depth,
                active=active,
                stage=0,
            )
            return
        location = self._location(operand)
        raw.tensor = location.tensor
        run = min(operand.run, int(depth.max()))
        transfer = location.load(self._context.load_queue(location), np.maximum(rows * depth, 1), run, rows)
        self._loop.load(raw, transfer, active=active, after=location.tokens, stage=0)

    def _turn(
        self, raw: Slot, result: Slot, banks: Sequence[Slot], rows: Ints, active: Bools,
        depths: Sequence[Ints],
    ) -> None:  # fmt: skip
        """Transpose a raw tile, as many blocks as a PSUM bank holds per evacuation."""
        per_bank = self._moving // self._tile
        for start in range(0, len(depths), per_bank):
            psum = banks[start // per_bank % len(banks)]
            tiles = range(start, min(start + per_bank, len(depths)))
            for tile in tiles:
                self._turn_tile(raw, psum, rows, depths[tile], active)
            live = active & (depths[start] > 0)
            self._loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(psum,), writes=(result,),
                            partitions=depths[start], elements=rows * len(tiles), active=live,
                            accumulates=True, stage=0)  # fmt: skip

    def _turn_tile(self, raw: Slot, psum: Slot, rows: Ints, depth: Ints, active: Bools) -> None:
        """Transpose rows x depth: the data is stationary, the identity moves past it."""
        for first in range(0, self._tile, self._row_tile):
            columns = np.clip(depth - first, 0, self._row_tile)
            live = active & (columns > 0)
            self._loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(raw,), partitions=rows, columns=columns,
                            active=live, flags=Flag.TRANSPOSE, stage=0)  # fmt: skip
            self._loop.step(Engine.TENSOR, Opcode.TRANSPOSE, reads=(raw,), writes=(psum,), partitions=rows,
                            columns=columns, elements=rows, active=live, flags=Flag.TRANSPOSE, stage=0,
                            output_dtype=raw.dtype)  # fmt: skip

    def _psum(self, name: str, version: Ints) -> Slot:
        return self._loop.slot(
            name, self._context.core.psum_bank_bytes, DType.F32, memory=Memory.PSUM, version=version
        )


def content_version(*keys: Ints) -> Ints:
    """Content number: counts up whenever one of the keys changes."""
    changes = np.zeros(len(keys[0]), bool)
    for key in keys:
        changes |= np.diff(key, prepend=key[:1]) != 0
    return np.cumsum(changes)
