"""Code generation for dot_general: tiles of 128 x 128 stationary and 512 moving columns, PSUM accumulation.

The left operand is stationary, so results come out with rows on partitions as they lie in HBM. The block
of the right operand for the current columns stays in SBUF while all rows pass; blocks are sized so that
the next one can be loaded meanwhile. Operands whose contraction runs along memory are turned on the way:
by DMA for 2-byte types, by the Tensor engine otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.allocate import OutOfOnChipMemory
from neuron_tools.compiler.codegen.added_rows import RowAddition
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import instruction_ns
from neuron_tools.compiler.codegen.epilogue import Epilogue
from neuron_tools.compiler.codegen.held_sums import add_up, held_blockings
from neuron_tools.compiler.codegen.joined_batches import (
    FULL_RATE_BYTES,
    Joined,
    join_batches,
    joined_operands,
    joined_sizes,
)
from neuron_tools.compiler.codegen.operand_blocks import (
    RAW_TILES,
    TURNING_BANKS,
    Blocking,
    OperandBlocks,
    content_version,
)
from neuron_tools.compiler.codegen.operands import Operand, Sizes, describe
from neuron_tools.compiler.codegen.residency import note_uses, order_of_group
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.row_order import left_order
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.stored_weights import as_stored
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.transpose import turn_matrices
from neuron_tools.compiler.hlo import TensorType
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode
from neuron_tools.simulator.dma_costs import stretch_time_ns

STREAMED_BYTES = 2 << 20
"""Size of one piece of an operand that is used once: several fit, and leave room for the next product's."""
STREAMED_LEFT_SHARE = 0.125
"""Part of SBUF that the few rows may take that such an operand meets."""
RESIDENT_SHARE = 0.62
"""Part of the free SBUF that operand blocks may take; the rest is for results and epilogues."""
ENOUGH_TIME = 1.01
"""Blocks are not worth more loads, which other work has to wait for, where they save less than this."""
HELD_BANKS = 6
"""PSUM banks that sums may hold while parts of the contraction come in; two stay free for others."""
WHOLE_SHARE = 0.25
"""Part of SBUF that a left operand may take to stay there for the whole product."""


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
    if sizes.batch == 1:
        left = as_stored(context, left, sizes.depth, sizes.rows)
        right = as_stored(context, right, sizes.depth, sizes.columns)
    joined = join_batches(context, left, right, sizes)
    if joined is not None:
        sides, whole = joined_operands(left, right, joined), joined_sizes(sizes, joined)
        matmul = Matmul(context, group, *sides, whole, hlo, joined)
        if matmul.holds_joined_columns:
            matmul.generate()
            return
    Matmul(context, group, left, right, sizes, hlo).generate()


def _elements(context: Context, values: Sequence[int]) -> float:
    return float(max((context.type_of(value).element_count for value in values), default=1))


class Matmul(OperandBlocks):
    """Declares and emits the loop of one batched matrix product."""

    def __init__(
        self, context: Context, group: Group, left: Operand, right: Operand, sizes: Sizes, hlo: int,
        joined: Joined | None = None,
    ) -> None:  # fmt: skip
        self._context = context
        self._joined = joined
        self._addition: RowAddition | None = None
        self._group = group
        self._left, self._right = left, right
        self._sizes = sizes
        self._hlo = hlo
        core = context.core
        self._tile = core.tensor_rows
        self._row_tile = core.tensor_columns
        self._moving = min(core.matmul_moving_columns, core.psum_bank_bytes // 4)
        self._row_tiles = -(-sizes.rows // self._row_tile)
        self._column_tiles = -(-sizes.columns // self._moving)
        self._depth_tiles = self._count_depth_tiles()
        self._read_residents: list[tuple[Resident, Slot]] = []
        self._left = self._in_sbuf(left)
        self._blocking = self._choose_blocking()
        if self._left.resident is not None and self._takes_part_of_depth and not self._holds_every_row:
            self._left = left
        self._left = self._turned_beforehand(
            self._left, sizes.rows, self._fits_whole(left) or self._loads_left_once
        )
        self._blocking = self._choose_blocking()
        if self._blocking.depth_tiles < self._depth_tiles:
            # What meets one block of the other side only is turned once on its way in, too.
            self._right = self._turned_beforehand(right, sizes.columns, sizes.rows <= self._row_tile)
            self._left = self._turned_beforehand(self._left, sizes.rows, sizes.columns <= self._moving)
            self._blocking = self._choose_blocking()

    def generate(self) -> None:
        """Build the loop with the chosen blocking and append it.

        Raises:
            OutOfOnChipMemory: Reductions over rows that do not fit PSUM follow the product.
        """
        self._index()
        self._loop = TileLoop(self._context, len(self._column_block), self._hlo)
        own = self._joined.columns if self._joined is not None and not self._joined.along_depth else None
        epilogue = Epilogue(
            self._context,
            self._group,
            self._loop,
            rows=self._rows_of,
            place=self._place_of,
            row_count=self._sizes.batch * self._sizes.rows,
            columns=self._sizes.columns if own is None else own,
            order=order_of_group(self._context, self._group),
            column_version=self._column_version,
            width=self._blocking.column_tiles * self._moving if own is None else own,
            last=self._is_last_depth,
            row_version=self._batch * self._row_blocks + self._row_block,
            adds_rows=self._sizes.batch == 1 and self._joined is None,
        )
        if epilogue.needs_whole_rows and (self._column_blocks > 1 or self._chunks > 1):
            raise OutOfOnChipMemory("The rows of a product with reductions do not fit PSUM.")
        added = epilogue.added_row
        self._addition = None if added is None else RowAddition(self._context, self._loop, added)
        left = self._stationary()
        right = self._moving_block()
        for row_tile in range(self._blocking.row_tiles):
            sums = self._multiply(row_tile, left, right)
            widths = [self._columns(tile) for tile in range(self._blocking.column_tiles)]
            if self._blocking.held_rows:
                sums = add_up(
                    self._loop, sums, widths, self._rows_of(row_tile), chunk=self._chunk,
                    version=self._held_version, blocking=self._blocking, bank_columns=self._moving,
                )  # fmt: skip
            if own is not None:
                sums, widths = (
                    [self._own_columns(sums, self._rows_of(row_tile))],
                    [np.full_like(widths[0], own)],
                )
            epilogue.emit(row_tile, sums, widths)
        self._loop.emit()
        epilogue.complete()
        note_uses(self._loop, self._read_residents)

    @property
    def holds_joined_columns(self) -> bool:
        """Whether the columns of all joined batches are one block, of which each row keeps its own."""
        along_columns = self._joined is not None and not self._joined.along_depth
        return not along_columns or self._blocking.column_tiles * self._moving >= self._sizes.columns

    # Blocking

    def _in_sbuf(self, left: Operand) -> Operand:
        """The left operand as it stayed in SBUF, where it did."""
        operation = self._group.operations[0]
        numbers = operation.attributes.get("dot_dimension_numbers", {})
        order = left_order(self._context, operation.operands[0], numbers)
        turns = left.dtype.byte_count <= 2 and not left.is_vector
        found = self._context.residency.find_order(left.root, order) if turns else None
        return left if found is None else replace(left, resident=found)

    @property
    def _takes_part_of_depth(self) -> bool:
        """Whether rows meet a part of the contraction at a time, time and again."""
        return not self._streams and self._blocking.depth_tiles < self._depth_tiles

    @property
    def _holds_every_row(self) -> bool:
        """Whether all rows are one block: what is turned of them is turned once."""
        return self._sizes.batch == 1 and self._blocking.row_tiles >= self._row_tiles

    def _count_depth_tiles(self) -> int:
        return -(-self._sizes.depth // self._tile)

    def _fits_whole(self, operand: Operand) -> bool:
        """Whether the whole left operand can stay in SBUF: then it is turned only once."""
        size = self._depth_tiles * self._row_tiles * self._row_tile * operand.dtype.byte_count
        return self._sizes.rows <= self._row_tile or size <= self._context.sbuf.largest() * WHOLE_SHARE

    @property
    def _loads_left_once(self) -> bool:
        """Whether all columns are one block that meets all of the contraction."""
        blocking = self._blocking
        every_column = blocking.column_tiles >= self._column_tiles
        return every_column and blocking.depth_tiles >= self._depth_tiles

    @property
    def _streams(self) -> bool:
        """Whether every block of the right operand meets one block of rows only: nothing needs to stay."""
        fits = self._depth_tiles * self._sizes.rows * self._left.dtype.byte_count
        whole = fits <= self._context.core.sbuf_bytes_per_partition * STREAMED_LEFT_SHARE
        turned = "tensor" in (self._left.method, self._right.method)
        once = self._sizes.rows <= self._row_tile and (self._sizes.batch == 1 or self._joined is not None)
        return once and whole and not turned

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
        """Blocks of columns that meet all of the contraction, or parts of it: what takes the least time."""
        sizes = self._sizes
        budget = int(self._context.sbuf.largest() * RESIDENT_SHARE)
        turned = sum(side.method in ("tensor", "resident") for side in (self._left, self._right))
        banks = (self._context.core.psum_banks - turned * TURNING_BANKS) // 2
        blocks = -(-self._column_tiles // banks)
        column_tiles = -(-self._column_tiles // blocks)  # blocks of about one size
        if self._streams:
            depth = max(1, STREAMED_BYTES // (min(column_tiles * self._moving, sizes.columns)
                                              * self._right.dtype.byte_count * self._tile))  # fmt: skip
            return Blocking(1, column_tiles, min(depth, self._depth_tiles), 1)
        whole = [
            Blocking(1, tiles, self._depth_tiles, rows_loaded)
            for tiles in range(column_tiles, 0, -1)
            for rows_loaded in self._rows_together()
        ]
        fitting = [
            each
            for each in whole
            if self._resident_bytes(each.column_tiles, each.depth_tiles, each.rows_loaded) <= budget
        ]
        if self._searches_blocks:
            return self._best((*fitting, *self._in_parts(budget), *(() if fitting else self._held(budget))))
        rows = min(banks, self._row_tiles)
        if fitting:
            return fitting[0]
        return self._best((self._part(rows, min(banks // rows, column_tiles), budget), *self._held(budget)))

    def _best(self, choices: Sequence[Blocking]) -> Blocking:
        """What loads least of the choices that take hardly longer than the quickest."""
        taken = [(*self._blocking_ns(each), each) for each in choices]
        enough_ns = ENOUGH_TIME * min(time_ns for time_ns, *_ in taken)
        return min((each for each in taken if each[0] <= enough_ns), key=lambda each: (each[1], each[0]))[-1]

    @property
    def _searches_blocks(self) -> bool:
        """Whether the time of loads chooses the blocks: what is turned is moved as it best turns."""
        return self._left.method == self._right.method == "natural"

    def _in_parts(self, budget: int) -> Iterator[Blocking]:
        """Blocks that meet a part of the contraction at a time; their sums stay in PSUM meanwhile."""
        for columns in range(1, min(HELD_BANKS, self._column_tiles) + 1):
            for rows in range(1, min(HELD_BANKS // columns, self._row_tiles) + 1):
                yield self._part(rows, columns, budget)

    def _held(self, budget: int) -> Iterator[Blocking]:
        """Blocks whose sums stay in SBUF, as fit; of plain products whose operands can be loaded in parts."""
        if not self._holds_sums:
            return
        most = min(self._context.core.psum_banks // 2, self._column_tiles)
        for blocking in held_blockings(self._row_tiles, most):
            each = blocking.column_tiles, blocking.depth_tiles, blocking.held_rows
            sums = blocking.held_rows * blocking.column_tiles * self._moving * DType.F32.byte_count
            if blocking.depth_tiles < self._depth_tiles and self._resident_bytes(*each) + sums <= budget:
                yield blocking

    @property
    def _holds_sums(self) -> bool:
        """Whether sums may stay in SBUF: of plain products whose operands need no turning on chip."""
        methods = {self._left.method, self._right.method}
        return self._joined is None and methods <= {"natural", "dma"}

    def _part(self, row_tiles: int, column_tiles: int, budget: int) -> Blocking:
        """As much of the contraction at a time as fits."""
        depth = self._depth_tiles
        while depth > 1 and self._resident_bytes(column_tiles, depth, row_tiles) > budget:
            depth = self._less_depth(depth)
        return Blocking(row_tiles, column_tiles, depth, row_tiles)

    def _rows_together(self) -> Iterable[int]:
        """Row tiles that may be loaded together, most first."""
        every = self._row_tiles
        counts: Sequence[int] = (4, 1)
        if self._left.method == "dma":
            counts = (1,)
        elif self._left.method in ("tensor", "resident"):
            counts = (every, 1)
        elif self._searches_blocks:
            counts = (every, 4, 2, 1)
        return dict.fromkeys(min(count, every) for count in counts)

    def _blocking_ns(self, blocking: Blocking) -> tuple[float, float]:
        """Time of the first loads and of the Tensor engine, or of all loads if longer; of all loads."""
        sizes, loaded = self._sizes, blocking.rows_loaded * self._row_tile
        depth = min(blocking.depth_tiles * self._tile, sizes.depth)
        row_blocks = -(-sizes.rows // loaded)
        width = min(blocking.column_tiles * self._moving, sizes.columns)
        column_blocks, chunks = -(-sizes.columns // width), -(-self._depth_tiles // blocking.depth_tiles)
        left = self._load_ns(self._left, depth, min(loaded, sizes.rows))
        right = self._load_ns(self._right, depth, width)
        iterations = sizes.batch * column_blocks * row_blocks * chunks
        # A block that is met again before another of its side takes its place is loaded once.
        adding = 0.0
        if blocking.held_rows:
            adding = sizes.batch * self._row_tiles * chunks * self._evacuation_ns(Opcode.TENSOR_TENSOR)
        lefts = iterations if row_blocks * chunks > 1 else sizes.batch
        rights = iterations if chunks > 1 else sizes.batch * column_blocks
        loads = lefts * left + rights * right
        busiest = max(loads, self._products_ns(), adding)
        return busiest + left + right + self._waiting_ns(blocking), loads

    def _waiting_ns(self, blocking: Blocking) -> float:
        """Time in which the Tensor engine waits for its sums to leave PSUM, as the next ones find no room."""
        core, held = self._context.core, blocking.row_tiles * blocking.column_tiles
        if 2 * held <= core.psum_banks:
            return 0.0
        return self._sizes.batch * self._row_tiles * self._evacuation_ns(Opcode.TENSOR_COPY)

    def _evacuation_ns(self, opcode: Opcode) -> float:
        """Time of the Vector engine for the sums of a row tile, in PSUM."""
        one = instruction_ns(self._context.core, Engine.VECTOR, opcode, self._moving, source=Memory.PSUM)
        return self._column_tiles * one

    def _load_ns(self, operand: Operand, depth: int, free: int) -> float:
        """Time of the DMA engines for a block of an operand."""
        if operand.root < 0 or operand.is_repeated:
            return 0.0
        core, item = self._context.core, operand.dtype.byte_count
        run = min(operand.run, free)
        if operand.method == "dma":
            run = min(operand.run, FULL_RATE_BYTES // item)
            item = round(item / core.dma_transpose_efficiency)
        stretch = stretch_time_ns(core, run * item, strided=run < operand.run and not operand.is_tiled)
        return depth * free / run * stretch / core.dma_engines

    def _products_ns(self) -> float:
        """Time of the Tensor engine."""
        sizes, full, left = self._sizes, *divmod(self._sizes.columns, self._moving)
        once = sum(
            count
            * instruction_ns(self._context.core, Engine.TENSOR, Opcode.MATMUL, columns, self._right.dtype)
            for count, columns in ((full, self._moving), (1, left))
            if columns
        )
        return sizes.batch * self._row_tiles * self._depth_tiles * once

    def _less_depth(self, depth_tiles: int) -> int:
        """Fewer tiles of the contraction for a block, where so many do not fit."""
        return -(-depth_tiles // 2)

    def _resident_bytes(self, column_tiles: int, depth_tiles: int, rows_loaded: int) -> int:
        """Bytes a partition for blocks of both operands: twice, for the next one, unless there is but one."""
        width = min(column_tiles * self._moving, self._sizes.columns)
        rows = min(rows_loaded * self._row_tile, self._sizes.rows)
        right = self._moving_bytes(width, depth_tiles)
        left = depth_tiles * rows * self._left.dtype.byte_count
        raw = 0
        if self._left.method == "tensor":
            raw += depth_tiles * self._tile * self._left.dtype.byte_count
        if self._right.method == "tensor":
            raw += RAW_TILES * depth_tiles * self._tile * self._right.dtype.byte_count
        once = self._searches_blocks and self._sizes.batch == 1 and depth_tiles == self._depth_tiles
        lefts = 1 if once and rows == self._sizes.rows else 2
        rights = 1 if once and width == self._sizes.columns else 2
        return rights * right + lefts * left + 2 * raw

    def _moving_bytes(self, width: int, depth_tiles: int) -> int:
        """Bytes a partition for so many columns of the right operand."""
        return depth_tiles * width * self._right.dtype.byte_count

    def _index(self) -> None:
        """Iteration arrays: batch, block of columns, block of rows, chunk of the contraction."""
        sizes, blocking = self._sizes, self._blocking
        row_blocks = -(-sizes.rows // (self._row_tile * blocking.row_tiles))
        column_blocks = -(-sizes.columns // (self._moving * blocking.column_tiles))
        chunks = -(-self._depth_tiles // blocking.depth_tiles)
        held = max(1, blocking.held_rows)
        blocks = -(-row_blocks // held)
        index = np.arange(sizes.batch * column_blocks * blocks * chunks * held)
        self._chunk = index // held % chunks
        self._row_block = index // (held * chunks) % blocks * held + index % held
        self._column_block = index // (held * chunks * blocks) % column_blocks
        self._batch = index // (held * chunks * blocks * column_blocks)
        self._chunks, self._row_blocks, self._column_blocks = chunks, blocks * held, column_blocks
        self._held_version = index // (held * chunks) * held + index % held
        # Each part of held sums leaves PSUM by itself.
        self._output_version = index if blocking.held_rows else index // chunks
        self._is_last_depth = self._chunk == chunks - 1
        self._column_version = content_version(self._column_block, self._batch * 0)

    def _rows_of(self, row_tile: int) -> Ints:
        """(iterations,) rows in a stationary tile."""
        first = (self._row_block * self._blocking.row_tiles + row_tile) * self._row_tile
        return np.clip(self._sizes.rows - first, 0, self._row_tile)

    def _place_of(self, row_tile: int) -> Ints:
        """(iterations,) number of a stationary tile among those of all batches."""
        return self._batch * self._row_tiles + self._row_block * self._blocking.row_tiles + row_tile

    def _columns(self, tile: int) -> Ints:
        """(iterations,) columns in a moving tile."""
        first = (self._column_block * self._blocking.column_tiles + tile) * self._moving
        return np.clip(self._sizes.columns - first, 0, self._moving)

    def _met_columns(self, tile: int) -> Ints:
        """(iterations,) columns of a moving tile that one tile of the contraction adds to."""
        return self._columns(tile)

    # Products

    def _multiply(self, row_tile: int, left: Sequence[Slot], right: Sequence[Slot]) -> list[Slot]:
        """Accumulate one stationary tile's products over the contraction; one PSUM slot per moving tile."""
        blocking, loop = self._blocking, self._loop
        sums = [self._psum("sums", self._output_version) for _ in range(blocking.column_tiles)]
        rows = self._rows_of(row_tile)
        if self._addition is not None:
            widths = [self._columns(moving) for moving in range(blocking.column_tiles)]
            self._addition.start(sums, rows, widths, (self._chunk == 0) & (rows > 0))
        starts = self._addition is None
        for tile in range(blocking.depth_tiles):
            depth = self._depth(tile)
            live = (depth > 0) & (rows > 0)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(left[tile],), partitions=depth, columns=rows,
                      active=live)  # fmt: skip
            for moving, psum in enumerate(sums):
                columns = self._met_columns(moving)
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
                    flags=Flag.NONE if starts and not tile else Flag.ACCUMULATE,
                )
        return sums
