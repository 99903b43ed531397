"""Code generation for dot_general: tiles of 128 x 128 stationary and 512 moving columns, PSUM accumulation.

The left operand is stationary, so results come out with rows on partitions as they lie in HBM. The block
of the right operand for the current columns stays in SBUF while all rows pass; blocks are sized so that
the next one can be loaded meanwhile. Operands whose contraction runs along memory are turned on the way:
by DMA for 2-byte types, by the Tensor engine otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neuron_tools.compiler.allocate import OutOfOnChipMemory
from neuron_tools.compiler.codegen.context import Context, Location
from neuron_tools.compiler.codegen.epilogue import Epilogue
from neuron_tools.compiler.codegen.slot import Slot, Transfer
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.transpose import turn_matrices
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.hlo import TensorType
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.simulator.program import DType, Engine, Flag, Memory, Opcode

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

LOAD_BYTES = 1 << 20
"""Size of one operand load: large enough to hide its latency, small enough for work to start early."""
STREAMED_BYTES = 2 << 20
"""Size of one piece of an operand that is used once: several fit, and leave room for the next product's."""
STREAMED_LEFT_SHARE = 0.125
"""Part of SBUF that the few rows may take that such an operand meets."""
PREFETCHED = 2
"""Blocks loaded ahead, beyond one, where every block is used once."""
RESIDENT_SHARE = 0.62
"""Part of the free SBUF that operand blocks may take; the rest is for results and epilogues."""
WHOLE_SHARE = 0.25
"""Part of SBUF that a left operand may take to stay there for the whole product."""
RAW_TILES = 2
"""Tiles of an operand that is turned on the Tensor engine, in turn: one is loaded while one is turned."""
TURNING_BANKS = 2
"""PSUM banks that turned blocks pass through, in turn."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """A batched matrix product: `batch` x (rows x depth) @ (depth x columns)."""

    batch: int
    rows: int
    depth: int
    columns: int

    @property
    def flops(self) -> int:
        """2 x multiply-accumulates."""
        return 2 * self.batch * self.rows * self.depth * self.columns


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of the product.

    Attributes:
        value, root: What is read, and the value in memory that it is read from (-1: a constant).
        turned: Contraction runs along memory, so blocks must be transposed.
        run: Elements that lie together: along the free dimensions, or along the contraction if `turned`.
        dtype: Element type on chip.
        is_vector: One free element: contraction goes straight to partitions, nothing to turn.
        turned_copy: Where a copy turned beforehand lies.
    """

    value: int
    root: int
    turned: bool
    run: int
    dtype: DType
    is_vector: bool
    turned_copy: Location | None = None

    @property
    def method(self) -> str:
        """How a block comes to lie with the contraction on partitions: natural, dma or tensor."""
        if not self.turned or self.is_vector or self.turned_copy is not None:
            return "natural"
        return "dma" if self.dtype.byte_count <= 2 else "tensor"


@dataclass(frozen=True, slots=True)
class Blocking:
    """Loop structure: what one iteration covers."""

    row_tiles: int  # stationary tiles of 128 rows
    column_tiles: int  # moving tiles of up to 512 columns
    depth_tiles: int  # contraction tiles of 128
    rows_loaded: int  # row tiles loaded together


def generate_dot(context: Context, group: Group) -> None:
    """Emit a dot_general and its epilogue."""
    operation = group.operations[0]
    numbers = operation.attributes.get("dot_dimension_numbers", {})
    left, right, sizes = describe(context, operation.operands, numbers)
    hlo = context.hlo(
        group, opcode="dot_general" if len(group.operations) == 1 else "fusion", model_flops=sizes.flops,
        weights=[sizes.flops / 128, *(_elements(context, op.results) for op in group.operations[1:])],
    )  # fmt: skip
    for output in group.outputs:
        context.define(output)
    if min(sizes.batch, sizes.rows, sizes.depth, sizes.columns) == 0:
        return
    Matmul(context, group, left, right, sizes, hlo).generate()


def _elements(context: Context, values: Sequence[int]) -> float:
    return float(max((context.type_of(value).element_count for value in values), default=1))


def describe(
    context: Context, operands: Sequence[int], numbers: dict[str, tuple[int, ...]]
) -> tuple[Operand, Operand, Sizes]:
    """Operands and sizes of a dot_general."""
    sides = []
    for value, name in zip(operands, ("lhs", "rhs")):
        shape = context.type_of(value).shape
        batching = numbers.get(f"{name}_batching_dimensions", ())
        contracting = numbers.get(f"{name}_contracting_dimensions", ())
        free = [axis for axis in range(len(shape)) if axis not in batching and axis not in contracting]
        depth = _product(shape[axis] for axis in contracting)
        batch = _product(shape[axis] for axis in batching)
        sides.append((_operand(context, value, shape, contracting, free), batch, depth,
                      _product(shape[axis] for axis in free)))  # fmt: skip
    (left, batch, depth, rows), (right, _, _, columns) = sides
    return left, right, Sizes(batch, rows, depth, columns)


def _operand(
    context: Context, value: int, shape: Sequence[int], contracting: Sequence[int], free: Sequence[int]
) -> Operand:
    layout = context.plan.views.layout(value)
    by_stride = sorted(
        (stride, extent, axis in contracting)
        for axis, dim in enumerate(layout.dims)
        for extent, stride in dim
        if stride
    )
    turned = bool(by_stride) and by_stride[0][2]
    run = 1
    for stride, extent, contracts in by_stride:
        if stride != run or contracts != turned:
            break
        run *= extent
    is_vector = _product(shape[axis] for axis in free) == 1
    dtype = chip_dtype(context.type_of(value if layout.root < 0 else layout.root).dtype)
    return Operand(value, layout.root, turned, run, dtype, is_vector)


def _product(extents: object) -> int:
    result = 1
    for extent in extents:  # type: ignore[attr-defined]
        result *= extent
    return result


class Matmul:
    """Declares and emits the loop of one batched matrix product."""

    def __init__(
        self, context: Context, group: Group, left: Operand, right: Operand, sizes: Sizes, hlo: int
    ) -> None:
        self._context = context
        self._group = group
        self._left, self._right = left, right
        self._sizes = sizes
        self._hlo = hlo
        core = context.core
        self._tile = core.tensor_rows
        self._row_tile = core.tensor_columns
        self._moving = min(core.matmul_moving_columns, core.psum_bank_bytes // 4)
        self._depth_tiles = self._count_depth_tiles()
        self._left = self._turned_beforehand(left, sizes.rows, self._fits_whole(left))
        self._blocking = self._choose_blocking()
        if self._blocking.depth_tiles < self._depth_tiles:
            self._right = self._turned_beforehand(right, sizes.columns, keep=False)
            self._left = self._turned_beforehand(self._left, sizes.rows, keep=False)
            self._blocking = self._choose_blocking()

    def generate(self) -> None:
        """Build the loop with the chosen blocking and append it."""
        self._index()
        self._loop = TileLoop(self._context, len(self._column_block), self._hlo)
        epilogue = Epilogue(
            self._context,
            self._group,
            self._loop,
            rows=self._rows_of,
            row_count=self._sizes.batch * self._sizes.rows,
            columns=self._sizes.columns,
            column_version=self._column_version,
            width=self._blocking.column_tiles * self._moving,
            last=self._is_last_depth,
        )
        if epilogue.needs_whole_rows and (self._column_blocks > 1 or self._chunks > 1):
            raise OutOfOnChipMemory("The rows of a product with reductions do not fit PSUM.")
        left = self._stationary()
        right = self._moving_block()
        for row_tile in range(self._blocking.row_tiles):
            sums = self._multiply(row_tile, left, right)
            epilogue.emit(
                row_tile, sums, [self._columns(tile) for tile in range(self._blocking.column_tiles)]
            )
        self._loop.emit()
        epilogue.complete()

    # Blocking

    def _count_depth_tiles(self) -> int:
        return -(-self._sizes.depth // self._tile)

    def _fits_whole(self, operand: Operand) -> bool:
        """Whether the whole left operand can stay in SBUF: then it is turned only once."""
        size = (
            self._depth_tiles
            * -(-self._sizes.rows // self._row_tile)
            * self._row_tile
            * operand.dtype.byte_count
        )
        return self._sizes.rows <= self._row_tile or size <= self._context.sbuf.largest() * WHOLE_SHARE

    @property
    def _streams(self) -> bool:
        """Whether every block of the right operand meets one block of rows only: nothing needs to stay."""
        fits = self._depth_tiles * self._sizes.rows * self._left.dtype.byte_count
        whole = fits <= self._context.core.sbuf_bytes_per_partition * STREAMED_LEFT_SHARE
        turned = "tensor" in (self._left.method, self._right.method)
        return self._sizes.rows <= self._row_tile and self._sizes.batch == 1 and whole and not turned

    def _turned_beforehand(self, operand: Operand, free: int, keep: bool) -> Operand:
        """The operand, replaced by a copy in HBM that is already turned if it would be turned many times."""
        if operand.method != "tensor" or keep or operand.root < 0:
            return operand
        location = self._context.location(operand.root)
        type_ = TensorType((self._sizes.batch, self._sizes.depth, free), location.type.dtype)
        copy = self._context.scratch(f"turned.{operand.value}", type_)
        turn_matrices(self._context, location, copy, (self._sizes.batch, free, self._sizes.depth), self._hlo)
        return replace(operand, run=free, turned_copy=copy)

    def _choose_blocking(self) -> Blocking:
        """The widest block of columns whose two buffers stay resident; else stream the contraction."""
        sizes = self._sizes
        budget = int(self._context.sbuf.largest() * RESIDENT_SHARE)
        turned = [self._left.method, self._right.method].count("tensor")
        banks = (self._context.core.psum_banks - turned * TURNING_BANKS) // 2
        wanted = -(-sizes.columns // self._moving)
        column_tiles = -(-wanted // -(-wanted // banks))  # blocks of about one size
        row_tiles_all = -(-sizes.rows // self._row_tile)
        if self._streams:
            depth = max(1, STREAMED_BYTES // (min(column_tiles * self._moving, sizes.columns)
                                              * self._right.dtype.byte_count * self._tile))  # fmt: skip
            return Blocking(1, column_tiles, min(depth, self._depth_tiles), 1)
        together = 1 if self._left.method == "dma" else min(4, row_tiles_all)
        if self._left.method == "tensor":
            together = row_tiles_all
        for tiles in range(column_tiles, 0, -1):
            for rows_loaded in dict.fromkeys((together, 1)):
                if self._resident_bytes(tiles, self._depth_tiles, rows_loaded) <= budget:
                    return Blocking(1, tiles, self._depth_tiles, rows_loaded)
        row_tiles = min(banks, row_tiles_all)
        depth = self._depth_tiles
        while depth > 1 and self._resident_bytes(1, depth, row_tiles) > budget:
            depth = -(-depth // 2)
        return Blocking(row_tiles, 1, depth, row_tiles)

    def _resident_bytes(self, column_tiles: int, depth_tiles: int, rows_loaded: int) -> int:
        width = min(column_tiles * self._moving, self._sizes.columns)
        rows = min(rows_loaded * self._row_tile, self._sizes.rows)
        right = depth_tiles * width * self._right.dtype.byte_count
        left = depth_tiles * rows * self._left.dtype.byte_count
        raw = 0
        if self._left.method == "tensor":
            raw += depth_tiles * self._tile * self._left.dtype.byte_count
        if self._right.method == "tensor":
            raw += RAW_TILES * depth_tiles * self._tile * self._right.dtype.byte_count
        return 2 * (right + left + raw)

    def _index(self) -> None:
        """Iteration arrays: batch, block of columns, block of rows, chunk of the contraction."""
        sizes, blocking = self._sizes, self._blocking
        row_blocks = -(-sizes.rows // (self._row_tile * blocking.row_tiles))
        column_blocks = -(-sizes.columns // (self._moving * blocking.column_tiles))
        chunks = -(-self._depth_tiles // blocking.depth_tiles)
        index = np.arange(sizes.batch * column_blocks * row_blocks * chunks)
        self._chunk = index % chunks
        self._row_block = index // chunks % row_blocks
        self._column_block = index // (chunks * row_blocks) % column_blocks
        self._batch = index // (chunks * row_blocks * column_blocks)
        self._chunks, self._row_blocks, self._column_blocks = chunks, row_blocks, column_blocks
        self._output_version = index // chunks
        self._is_last_depth = self._chunk == chunks - 1
        self._column_version = _version(self._column_block, self._batch * 0)

    def _rows_of(self, row_tile: int) -> IntArray:
        """(iterations,) rows in a stationary tile."""
        first = (self._row_block * self._blocking.row_tiles + row_tile) * self._row_tile
        return np.clip(self._sizes.rows - first, 0, self._row_tile)

    def _columns(self, tile: int) -> IntArray:
        """(iterations,) columns in a moving tile."""
        first = (self._column_block * self._blocking.column_tiles + tile) * self._moving
        return np.clip(self._sizes.columns - first, 0, self._moving)

    def _depth(self, tile: int) -> IntArray:
        """(iterations,) contraction rows in a depth tile."""
        first = (self._chunk * self._blocking.depth_tiles + tile) * self._tile
        return np.clip(self._sizes.depth - first, 0, self._tile)

    # Operands

    def _stationary(self) -> list[Slot]:
        """Slots that hold the left operand's block, one per depth tile (several may share a slot)."""
        blocking = self._blocking
        if self._streams:
            rows = np.full(len(self._batch), self._sizes.rows, np.int64)
            return self._whole(self._left, _version(self._batch), rows)
        per_load = max(blocking.rows_loaded // blocking.row_tiles, 1)
        super_block = self._row_block // per_load
        keys = [self._batch, super_block, self._chunk]
        if self._row_blocks > per_load or self._chunks > 1:
            keys.append(self._column_block)
        version = _version(*keys)
        loaded = per_load * blocking.row_tiles
        rows = np.clip(self._sizes.rows - super_block * loaded * self._row_tile, 0, loaded * self._row_tile)
        return self._block(self._left, version, rows, loaded * self._row_tile)

    def _moving_block(self) -> list[Slot]:
        keys = [self._batch, self._column_block, self._chunk]
        if self._chunks > 1:
            keys.append(self._row_block)
        width = self._blocking.column_tiles * self._moving
        columns = np.clip(self._sizes.columns - self._column_block * width, 0, width)
        return self._block(self._right, _version(*keys), columns, min(width, self._sizes.columns))

    def _block(self, operand: Operand, version: IntArray, free: IntArray, width: int) -> list[Slot]:
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

    def _whole(self, operand: Operand, version: IntArray, free: IntArray) -> list[Slot]:
        """All of an operand's contraction in one slot, loaded once."""
        size = self._depth_tiles * int(free.max()) * operand.dtype.byte_count
        slot = self._loop.slot("operand", size, operand.dtype, version=version)
        self._load(operand, slot, np.full(len(free), self._sizes.depth, np.int64), self._depth_tiles, free)
        return [slot] * self._blocking.depth_tiles

    def _location(self, operand: Operand) -> Location:
        return operand.turned_copy or self._context.location(operand.root)

    def _load(self, operand: Operand, slot: Slot, depth: IntArray, tiles: int, free: IntArray) -> None:
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
        location = self._location(operand)
        slot.tensor = location.tensor
        item = location.dtype.byte_count
        turned = operand.method == "dma"
        run = operand.run
        if operand.is_vector and operand.turned:
            run = max(1, self._sizes.depth // self._tile)
        elif not turned:
            run = min(run, int(free.max()))
        transfer = Transfer(
            self._context.load_queue(),
            Memory.HBM,
            Memory.SBUF,
            np.maximum(depth * free, 1) * item,
            run * item,
            np.minimum(depth, self._tile),
            location.purpose,
            location.dtype,
            location.tensor,
            transpose=turned,
        )
        self._loop.load(slot, transfer, active=active, after=location.tokens)

    def _turned_block(self, operand: Operand, version: IntArray, free: IntArray, width: int) -> list[Slot]:
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
            self._turn(raw, result, banks, rows, active)
        return [result] * depth_tiles

    def _load_raw(
        self, operand: Operand, raw: Slot, rows: IntArray, depth: IntArray, active: BoolArray
    ) -> None:
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
        item = location.dtype.byte_count
        run = min(operand.run, int(depth.max()))
        transfer = Transfer(
            self._context.load_queue(),
            Memory.HBM,
            Memory.SBUF,
            np.maximum(rows * depth, 1) * item,
            run * item,
            rows,
            location.purpose,
            location.dtype,
            location.tensor,
        )
        self._loop.load(raw, transfer, active=active, after=location.tokens, stage=0)

    def _turn(
        self, raw: Slot, result: Slot, banks: Sequence[Slot], rows: IntArray, active: BoolArray
    ) -> None:
        """Transpose a raw tile, as many blocks as a PSUM bank holds per evacuation."""
        per_bank = self._moving // self._tile
        for start in range(0, self._blocking.depth_tiles, per_bank):
            psum = banks[start // per_bank % len(banks)]
            tiles = range(start, min(start + per_bank, self._blocking.depth_tiles))
            for tile in tiles:
                self._turn_tile(raw, psum, rows, self._depth(tile), active)
            live = active & (self._depth(start) > 0)
            self._loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(psum,), writes=(result,),
                            partitions=self._depth(start), elements=rows * len(tiles), active=live,
                            accumulates=True, stage=0)  # fmt: skip

    def _turn_tile(self, raw: Slot, psum: Slot, rows: IntArray, depth: IntArray, active: BoolArray) -> None:
        """Transpose rows x depth: the data is stationary, the identity moves past it."""
        for first in range(0, self._tile, self._row_tile):
            columns = np.clip(depth - first, 0, self._row_tile)
            live = active & (columns > 0)
            self._loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(raw,), partitions=rows, columns=columns,
                            active=live, flags=Flag.TRANSPOSE, stage=0)  # fmt: skip
            self._loop.step(Engine.TENSOR, Opcode.TRANSPOSE, reads=(raw,), writes=(psum,), partitions=rows,
                            columns=columns, elements=rows, active=live, flags=Flag.TRANSPOSE, stage=0,
                            output_dtype=raw.dtype)  # fmt: skip

    def _psum(self, name: str, version: IntArray) -> Slot:
        return self._loop.slot(
            name, self._context.core.psum_bank_bytes, DType.F32, memory=Memory.PSUM, version=version
        )

    # Products

    def _multiply(self, row_tile: int, left: Sequence[Slot], right: Sequence[Slot]) -> list[Slot]:
        """Accumulate one stationary tile's products over the contraction; one PSUM slot per moving tile."""
        blocking, loop = self._blocking, self._loop
        sums = [self._psum("sums", self._output_version) for _ in range(blocking.column_tiles)]
        rows = self._rows_of(row_tile)
        for tile in range(blocking.depth_tiles):
            depth = self._depth(tile)
            live = (depth > 0) & (rows > 0)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(left[tile],), partitions=depth, columns=rows,
                      active=live)  # fmt: skip
            for moving, psum in enumerate(sums):
                columns = self._columns(moving)
                loop.step(
                    Engine.TENSOR,
                    Opcode.MATMUL,
                    reads=(right[tile], left[tile]),
                    writes=(psum,),
                    partitions=depth,
                    columns=rows,
                    elements=columns,
                    active=live & (columns > 0),
                    accumulates=True,
                    flags=Flag.ACCUMULATE if tile else Flag.NONE,
                )
        return sums


def _version(*keys: IntArray) -> IntArray:
    """Content number: counts up whenever one of the keys changes."""
    changes = np.zeros(len(keys[0]), bool)
    for key in keys:
        changes |= np.diff(key, prepend=key[:1]) != 0
    return np.cumsum(changes)
