"""Code generation for attention: scores, softmax and weighted values of a tile of queries, all on chip.

An iteration is a tile of 128 queries against a chunk of keys. Its scores go from PSUM to SBUF with their
row maximum; when all chunks of the tile are there, exponentials follow chunk by chunk with their row sums,
are turned on the Tensor engine, and multiply the values, accumulating in PSUM. The division by the sums is
left to the result (Dao et al., FlashAttention-2, section 3.1). Keys and values of a head stay in SBUF for
all its queries. In a causal block the chunks that lie in a tile's future are left out.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.attention_heads import AttentionHeads
from neuron_tools.compiler.codegen.attention_residents import AttentionResidents
from neuron_tools.compiler.codegen.attention_softmax import AttentionSoftmax
from neuron_tools.compiler.codegen.attention_tiles import Shapes, first_seen, iterations, shared_heads
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.micro import External, Key
from neuron_tools.compiler.codegen.operands import Operand, describe
from neuron_tools.compiler.codegen.residents import Resident
from neuron_tools.compiler.codegen.selection import select
from neuron_tools.compiler.codegen.slot import Slot, Step, Transfer
from neuron_tools.compiler.codegen.tables import load_tables
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Group, Shape
from neuron_tools.compiler.views import real_positions
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

CHUNK_BANKS = 2
"""PSUM banks that a chunk of scores takes; two chunks, turned weights and results share the eight.

Weights of four bytes take as much room turned as their scores: a chunk is one bank then.
"""
SHARED_SHARE = 0.125
"""Part of SBUF that an operand may take which several heads share: it is loaded once for all of them."""
QUERY_TILES = 8
"""Tiles of queries loaded together."""


def generate_attention(context: Context, group: Group) -> None:
    """Emit an attention group."""
    _Attention(context, group).generate()


class _Attention(AttentionHeads, AttentionSoftmax, AttentionResidents):
    def __init__(self, context: Context, group: Group) -> None:
        assert group.attention is not None
        assert group.domain is not None
        self._context = context
        self._group = group
        self._block = block = group.attention
        core = context.core
        self._tile = core.tensor_columns
        self._bank = core.psum_bank_bytes // 4
        numbers = [op.attributes.get("dot_dimension_numbers", {}) for op in (block.scores, block.values)]
        self._query, self._key, first = describe(context, block.scores.operands, numbers[0])
        _, self._value, second = describe(context, block.values.operands, numbers[1])
        self._shapes = Shapes(
            first.batch, shared_heads(context, block.scores.operands[1], first.batch), first.rows,
            first.columns, first.depth, second.columns,
        )  # fmt: skip
        self._flops = first.flops + second.flops
        self._dtype = chip_dtype(context.type_of(block.values.operands[0]).dtype)
        banks = CHUNK_BANKS if self._dtype.byte_count <= DType.BF16.byte_count else 1
        self._chunk = min(banks * self._bank, -(-first.columns // self._tile) * self._tile)
        self._at = iterations(self._shapes, self._tile, self._chunk, block.is_causal)
        self._chunks = int(self._at.chunk.max()) + 1
        self._selection = select(group, context.module, context.plan.views, group.domain)
        self._slots: dict[Key, Slot] = {}
        self._stores: list[tuple[int, Step]] = []
        self._used: list[tuple[Resident, Slot]] = []
        self._staying: dict[int, Slot] = {}
        self._collected: dict[Key, Slot] = {}

    def generate(self) -> None:
        """Declare the loop and append it."""
        context, group = self._context, self._group
        weights = [float(self._flops) / 2 / 128, *(self._elements(op) for op in group.operations[1:-1])]
        hlo = context.hlo(
            group, opcode="fusion", model_flops=self._flops, weights=[*weights, self._flops / 2 / 128]
        )
        for value in dict.fromkeys((*group.outputs, self._block.values.results[0])):
            context.define(value)
        self._loop = TileLoop(context, len(self._at.tile), hlo)
        functions = dict.fromkeys(micro.activation for micro in self._selection.micros if micro.activation)
        load_tables(context, self._loop, functions)
        self._scores()
        exponentials = self._softmax()
        self._store_statistics()
        sums = self._weighted_values(exponentials)
        self._result(sums)
        self._loop.emit()
        for value, step in self._stores:
            context.complete(value, self._loop.completion(step))
        self._note_uses()
        for value, slot in self._staying.items():
            self._settle_result(value, slot)

    def _elements(self, operation: Operation) -> float:
        return float(self._context.type_of(operation.results[0]).element_count)

    # Products

    def _scores(self) -> None:
        """Scores of a tile and a chunk in PSUM."""
        at, shapes = self._at, self._shapes
        queries = self._operand(
            self._query, "queries", at.head * -(-shapes.row_tiles(self._tile) // QUERY_TILES)
            + at.row // QUERY_TILES, self._query_columns(), at.head, at.row // QUERY_TILES * QUERY_TILES,
        )  # fmt: skip
        shared = at.head // shapes.shared
        keys = self._operand(self._key, "keys", shared, shapes.columns, shared, 0)
        banks = -(-self._chunk // self._bank)
        self._product = self._loop.slot(
            "scores", banks * self._context.core.psum_bank_bytes, DType.F32, memory=Memory.PSUM
        )
        depths = [min(self._tile, shapes.depth - start) for start in range(0, shapes.depth, self._tile)]
        for index, depth in enumerate(depths):
            self._loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(queries,), partitions=depth,
                            columns=at.rows)  # fmt: skip
            for bank in range(banks):
                columns = np.clip(at.width - bank * self._bank, 0, self._bank)
                self._loop.step(
                    Engine.TENSOR, Opcode.MATMUL, reads=(keys, queries), writes=(self._product,),
                    partitions=depth, columns=at.rows, elements=columns, active=columns > 0, accumulates=True,
                    flags=Flag.ACCUMULATE if index else Flag.NONE,
                )  # fmt: skip
        self._hide_future()

    def _hide_future(self) -> None:
        """Add -inf above the diagonal: identity @ mask, accumulated into the block on the diagonal."""
        at, loop = self._at, self._loop
        if not at.masked.any():
            return
        item = self._dtype.byte_count
        first = np.arange(len(at.tile)) == 0
        identity = loop.slot("identity", self._tile * item, self._dtype, stationary=True)
        mask = loop.slot("mask", self._tile * item, self._dtype, stationary=True)
        for constant in (identity, mask):
            loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(constant,), elements=self._tile, active=first)
            loop.step(Engine.GPSIMD, Opcode.AFFINE_SELECT, reads=(constant,), writes=(constant,),
                      elements=self._tile, active=first)  # fmt: skip
        columns = np.minimum(at.width, self._tile)
        loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(identity,), partitions=at.rows, columns=at.rows,
                  active=at.masked)  # fmt: skip
        loop.step(Engine.TENSOR, Opcode.MATMUL, reads=(mask, identity), writes=(self._product,),
                  partitions=at.rows, columns=at.rows, elements=columns, active=at.masked, accumulates=True,
                  flags=Flag.ACCUMULATE)  # fmt: skip

    def _query_columns(self) -> Ints:
        """(iterations,) queries in the block of tiles that an iteration's tile belongs to."""
        span = QUERY_TILES * self._tile
        return np.minimum(span, self._shapes.rows - self._at.row // QUERY_TILES * span)

    def _operand(
        self, operand: Operand, name: str, key: Ints, free: int | Ints, head: Ints,
        first: Ints | int,
    ) -> Slot:  # fmt: skip
        """An operand block, contraction on partitions; loaded, or turned in SBUF, when `key` changes."""
        version = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
        item = operand.dtype.byte_count
        count = np.broadcast_to(np.asarray(free), version.shape)
        folds = -(-self._shapes.depth // self._tile)
        slot = self._loop.slot(name, folds * int(count.max()) * item, operand.dtype, version=version,
                               extra_buffers=1)  # fmt: skip
        found = self._in_sbuf(operand)
        if found is not None:
            self._turned(slot, lambda tile: self._tile_of(found, head, first, tile), count)
            return slot
        if operand.method == "tensor":
            self._turned(slot, self._rows_of_heads(operand, head, first, count), count)
            return slot
        partitions = min(self._tile, self._shapes.depth)
        self._fetch(operand, slot, count * self._shapes.depth, partitions, min(operand.run, int(count.max())))
        return slot

    def _fetch(self, operand: Operand, slot: Slot, elements: Ints, partitions: int, run: int) -> None:
        """Load a block; `run` elements of it lie together, where DMA or nobody has to turn it."""
        location = self._context.location(operand.root)
        slot.tensor = location.tensor
        item = location.dtype.byte_count
        run = 1 if operand.method == "tensor" else run
        transfer = Transfer(
            self._context.load_queue(location), Memory.HBM, Memory.SBUF, elements * item, run * item,
            partitions, location.purpose, location.dtype, location.tensor,
            transpose=operand.method == "dma",
        )  # fmt: skip
        self._loop.load(slot, transfer, active=self._loop.first_of(slot.version), after=location.tokens)

    def _weighted_values(self, weights: Slot) -> Slot:
        """Turn a chunk's weights and multiply them with the values; a tile's sum in PSUM."""
        at, shapes, loop = self._at, self._shapes, self._loop
        item = self._dtype.byte_count
        turning = loop.slot("turning", self._chunk * item, self._dtype, memory=Memory.PSUM)
        for block in range(-(-self._chunk // self._tile)):
            columns = np.clip(at.width - block * self._tile, 0, self._tile)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(weights,), partitions=at.rows, columns=columns,
                      active=columns > 0, flags=Flag.TRANSPOSE)  # fmt: skip
            loop.step(Engine.TENSOR, Opcode.TRANSPOSE, reads=(weights,), writes=(turning,),
                      partitions=at.rows, columns=columns, elements=at.rows, active=columns > 0,
                      flags=Flag.TRANSPOSE, output_dtype=self._dtype, accumulates=True)  # fmt: skip
        turned = loop.slot("turned weights", self._chunk * item, self._dtype)
        self._copy(turning, turned, np.minimum(at.width, self._tile), -(-at.width // self._tile) * at.rows)
        values = self._values()
        sums = loop.slot("result", self._context.core.psum_bank_bytes, DType.F32, memory=Memory.PSUM,
                         version=at.tile)  # fmt: skip
        for block in range(-(-self._chunk // self._tile)):
            depth = np.clip(at.width - block * self._tile, 0, self._tile)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(turned,), partitions=depth, columns=at.rows,
                      active=depth > 0)  # fmt: skip
            loop.step(Engine.TENSOR, Opcode.MATMUL, reads=(values[block], turned), writes=(sums,),
                      partitions=depth, columns=at.rows, elements=shapes.width, active=depth > 0,
                      accumulates=True, flags=Flag.ACCUMULATE)  # fmt: skip
        return sums

    def _values(self) -> list[Slot]:
        """A head's values, keys' positions on partitions; a slot for each tile of a chunk's keys."""
        found = self._in_sbuf(self._value)
        if found is not None:
            return self._values_in_sbuf(found)
        shapes = self._shapes
        together = self._values_together()
        key = self._at.head // shapes.shared // together
        version = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
        folds = -(-shapes.columns // self._tile)
        slot = self._loop.slot(
            "values", folds * shapes.width * together * self._value.dtype.byte_count, self._value.dtype,
            version=version, extra_buffers=1,
        )  # fmt: skip
        count = np.full(len(version), shapes.columns * shapes.width * together, np.int64)
        run = min(self._value.run, shapes.width) * together
        self._fetch(self._value, slot, count, min(self._tile, shapes.columns), run)
        return [slot] * -(-self._chunk // self._tile)

    # Operands from outside

    def _shared_contents(self, external: External, dtype: DType) -> Ints | None:
        """(iterations,) content of an operand that several heads read (a mask), where all of it fits SBUF."""
        at, shapes = self._at, self._shapes
        starts = np.arange(shapes.batch) * shapes.rows * shapes.columns
        different, head = np.unique(real_positions(external.view.blocks, starts), return_inverse=True)
        tiles = shapes.row_tiles(self._tile) * self._chunks
        size = len(different) * tiles * self._chunk * dtype.byte_count
        limit = SHARED_SHARE * self._context.core.sbuf_bytes_per_partition
        if len(different) == shapes.batch or size > limit or external.view.root < 0:
            return None
        return np.asarray(head[at.head] * tiles + at.row * self._chunks + at.chunk, np.int64)

    def _external(self, key: Key, external: External) -> None:
        at = self._at
        dtype = chip_dtype(self._context.type_of(external.stored_value).dtype)
        per_chunk = external.form not in ("scalar", "row", "iota_row")
        width = at.width if per_chunk else np.ones_like(at.width)
        contents = self._shared_contents(external, dtype) if per_chunk else at.tile
        shared = per_chunk and contents is not None
        slot = self._loop.slot(
            "operand" if per_chunk else "row", (self._chunk if per_chunk else 1) * dtype.byte_count, dtype,
            version=contents, extra_buffers=1, whole=shared,
        )  # fmt: skip
        self._slots[key] = slot
        active = first_seen(slot.version) if shared else self._loop.first_of(slot.version)
        if external.view.root < 0:
            self._loop.step(Engine.GPSIMD, Opcode.IOTA, writes=(slot,), partitions=at.rows, elements=width,
                            active=active)  # fmt: skip
            return
        location = self._context.location(external.view.root)
        slot.tensor = location.tensor
        item = location.dtype.byte_count
        run = max(1, min(int(width.max()), external.view.run_elements))
        transfer = Transfer(
            self._context.load_queue(location), Memory.HBM, Memory.SBUF, at.rows * width * item, run * item,
            at.rows, location.purpose, location.dtype, location.tensor,
        )  # fmt: skip
        self._loop.load(slot, transfer, active=active, after=location.tokens)

    # Results

    def _result(self, sums: Slot) -> None:
        """Divide a tile's sums by its row sums on the way out of PSUM, and store it."""
        at, shapes = self._at, self._shapes
        value = self._block.values.results[0]
        location = self._context.locations[value]
        dtype = chip_dtype(location.type.dtype)
        divisor = next(
            (self._slots[key] for micro in self._selection.micros if self._is_division(micro)
             for key in micro.reads[1:] if key in self._slots), None,
        )  # fmt: skip
        heads = self._result_heads(value)
        if heads is None:
            output = self._loop.slot("output", shapes.width * dtype.byte_count, dtype, version=at.tile)
        else:
            output = self._staying[value] = self._resident_result(value, heads, dtype)
        reads = (sums,) if divisor is None else (sums, divisor)
        self._loop.step(Engine.VECTOR, Opcode.TENSOR_SCALAR, reads=reads, writes=(output,),
                        partitions=at.rows, elements=shapes.width, active=at.last)  # fmt: skip
        if heads is None or self._context.residency.stays[value].elsewhere:
            self._save(value, output, shapes.width)

    def _store_statistics(self) -> None:
        for value, key in self._selection.stored.items():
            if self._group.shapes[value] is not Shape.ROW or key not in self._slots:
                continue
            if key in self._collected:
                self._store_turned(value, self._collected[key])
            else:
                self._save(value, self._slots[key], 1)

    def _store_turned(self, value: int, collected: Slot) -> None:
        """Rows of numbers, one for each tile of queries that was collected."""
        turned, count, last = self._turned_statistics(collected)
        location, at = self._context.locations[value], self._at
        ends = np.flatnonzero(last)
        rows = np.zeros(len(last), np.int64)
        rows[ends] = np.diff(np.cumsum(np.where(at.last, at.rows, 0))[ends], prepend=0)
        item = location.dtype.byte_count
        transfer = Transfer(
            self._context.store_queue(), Memory.SBUF, Memory.HBM, rows * item, int(at.rows.max()) * item,
            count, location.store_purpose, location.dtype, location.tensor,
        )  # fmt: skip
        self._stores.append((value, self._loop.store(turned, transfer, active=last)))

    def _save(self, value: int, slot: Slot, width: int) -> None:
        location = self._context.locations[value]
        item = location.dtype.byte_count
        transfer = Transfer(
            self._context.store_queue(), Memory.SBUF, Memory.HBM, self._at.rows * width * item, width * item,
            self._at.rows, location.store_purpose, location.dtype, location.tensor,
        )  # fmt: skip
        self._stores.append((value, self._loop.store(slot, transfer, active=self._at.last)))

    # Engines

    def _copy(self, source: Slot, target: Slot, partitions: Ints, elements: Ints) -> None:
        """Out of PSUM by the Scalar and the Vector engine in turn: both have other work on every chunk."""
        odd = np.arange(len(partitions)) % 2 == 1
        for engine, active in ((Engine.SCALAR, odd), (Engine.VECTOR, ~odd)):
            self._loop.step(
                engine, Opcode.TENSOR_COPY, reads=(source,), writes=(target,), partitions=partitions,
                elements=elements, input_dtype=source.dtype, output_dtype=target.dtype, active=active,
                accumulates=True, stage=self._weighted_stage + 2,
            )  # fmt: skip
