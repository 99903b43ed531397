"""Code generation for the backward of attention: scores and their gradients never reach HBM.

An iteration is a tile of queries against a tile of keys (Dao et al., FlashAttention-2, section 3.2). Scores
are computed again and become weights by the logarithms of their sums, which the forward pass kept. Products
of weights and of the scores' gradients with queries' rows add up in PSUM for all queries of a tile of keys,
those with keys in SBUF for all keys of a tile of queries. Products of one iteration, weights of the one
before and the sums of that before run at one time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.attention_tiles import first_seen, heads_beside, heads_together
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.slot import Slot, Step, Transfer
from neuron_tools.compiler.codegen.tables import load_tables
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.opcodes import ATTENTION_OPERANDS
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.compiler.views import real_positions
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

RESULT_SHARE = 16
"""A gradient's tiles take at most one part in so many of a partition while they wait for further heads."""
_TURNED, _READY, _SCORED, _WEIGHTED, _SUMMED, _TAKEN, _QUERIED = range(1, 8)
"""Stages: operands are turned, taken out of PSUM, multiplied, made weights and gradients of scores,
multiplied again; these gradients, turned, are taken out of PSUM and multiplied with keys. With fewer stages
an engine would wait for what another has only begun in the same one, and in the end all for one another."""


@dataclass(frozen=True)
class _Tiles:
    """Which tiles each iteration is about; all arrays (iterations,).

    Attributes:
        keys: Number of the tile of keys, over all heads of keys; `queries` that of queries.
        first_keys, last_keys: Whether it is the first, or last, that meets its tile of queries.
        last_queries: Whether it is the last that meets its tile of keys.
        rows, width: Queries and keys in the tiles.
        masked: Whether some of the keys lie in the future of some of the queries.
    """

    keys: Ints
    queries: Ints
    first_keys: Bools
    last_keys: Bools
    last_queries: Bools
    rows: Ints
    width: Ints
    masked: Bools

    @classmethod
    def of(cls, heads: int, shared: int, sizes: tuple[int, int], tile: int, *, is_causal: bool) -> _Tiles:
        """All pairs, the queries of all heads that share keys one after the other for each tile of keys."""
        query_tiles, key_tiles = (-(-size // tile) for size in sizes)
        shape = (heads // shared, key_tiles, shared, query_tiles)
        group, key, head, query = (axis.ravel() for axis in np.indices(shape))
        seen = (key * tile < (query + 1) * tile) if is_causal else np.ones(len(key), bool)
        group, key, head, query = (axis[seen] for axis in (group, key, head, query))
        keys, queries = group * key_tiles + key, (group * shared + head) * query_tiles + query
        return cls(
            keys, queries, first_seen(queries), first_seen(queries[::-1])[::-1],
            np.diff(keys, append=-1) != 0, np.minimum(tile, sizes[0] - query * tile),
            np.minimum(tile, sizes[1] - key * tile), (key == query) & is_causal,
        )  # fmt: skip


def generate_attention_gradient(context: Context, group: Group) -> None:
    """Emit the gradients of queries, keys and values."""
    _AttentionGradient(context, group).generate()


class _AttentionGradient:
    def __init__(self, context: Context, group: Group) -> None:
        self._context = context
        operation = group.operations[0]
        places = dict(zip(ATTENTION_OPERANDS, operation.attributes["operands"]))
        self._operands = {name: operation.operands[at] for name, at in places.items() if at >= 0}
        self._results = dict(zip(operation.attributes["parts"], operation.results))
        query, key = (context.type_of(self._operands[name]) for name in ("query", "key"))
        self._depth, self._width = query.shape[-1], context.type_of(self._operands["value"]).shape[-1]
        heads, key_heads = math.prod(query.shape[:-2]), math.prod(key.shape[:-2])
        self._size = context.core.tensor_columns
        self._heads = query.shape[1]
        sizes = (query.shape[-2], key.shape[-2])
        is_causal = bool(operation.attributes["is_causal"])
        self._by_tokens = operation.attributes.get("by_tokens", ())
        self._loses = bool(operation.attributes["dropout"])
        self._at = _Tiles.of(heads, heads // key_heads, sizes, self._size, is_causal=is_causal)
        self._query_tiles, self._key_tiles = (-(-size // self._size) for size in sizes)
        self._dtype = chip_dtype(query.dtype)
        flops = 2 * heads * sizes[0] * sizes[1] * (3 * self._depth + 2 * self._width)
        self._hlo = context.hlo(group, model_flops=flops)
        self._loop = TileLoop(context, len(self._at.keys), self._hlo)
        self._copies = 0
        self._banks: dict[int, Slot] = {}
        for value in operation.results:
            context.define(value)

    def generate(self) -> None:
        """Declare the loop and append it."""
        load_tables(self._context, self._loop, {"exp": None})
        at = self._at
        self._query, self._turned_query = self._tile("query", at.queries, at.rows, self._depth)
        self._gradient, self._turned_gradient = self._tile("gradient", at.queries, at.rows, self._width)
        self._key, self._turned_key = self._tile("key", at.keys, at.width, self._depth)
        _, self._turned_value = self._tile("value", at.keys, at.width, self._width, turned_alone=True)
        weights = self._weights()
        kept = self._dropout(weights) if self._loses else weights
        changes = self._score_gradients(weights, kept)
        stores = [*self._of_keys(kept, changes), *self._of_queries(changes)]
        self._loop.emit()
        for value, step in stores:
            self._context.complete(value, self._loop.completion(step))

    # Operands

    def _tile(
        self, name: str, content: Ints, rows: Ints, columns: int, *, turned_alone: bool = False
    ) -> tuple[Slot, Slot]:
        """Rows of an operand, and the same turned: by DMA where elements have two bytes and rows follow each
        other; short rows that do not are loaded with those of the heads beside them, and as many heads' are
        turned at once as the array has rows for.
        """
        together = self._heads_together(name, columns)
        by_dma = self._dtype.byte_count == DType.BF16.byte_count and together == 1
        at_once = math.gcd(together, max(1, self._size // columns))
        content_turned = self._of_heads(name, content, at_once)
        turned = self._slot(f"turned {name}", self._size, self._dtype, content_turned)
        plain = turned
        if not (turned_alone and by_dma):
            plain = self._heads_slot(name, columns, content, together)
            self._load(name, plain, rows, columns, together=together)
        if by_dma:
            self._load(name, turned, rows, columns, transpose=True)
        else:
            new = first_seen(content_turned)
            self._turn(plain, turned, rows, columns * at_once, _TURNED, new, taken=_READY)
        return plain, turned

    def _of_heads(self, name: str, content: Ints, together: int) -> Ints:
        """The number of an operand's tile where those of so many heads are one."""
        tiles = self._tiles(name)
        head, tile = np.divmod(content, tiles)
        return np.asarray(head // together * tiles + tile)

    def _slot(self, name: str, columns: int, dtype: DType, content: Ints) -> Slot:
        """A tile; those that later iterations meet again stay until the last has."""
        last_needed = np.minimum.accumulate(content[::-1])[::-1]
        alive = int((np.maximum.accumulate(content) - last_needed).max()) + 1
        return self._loop.slot(
            name, columns * dtype.byte_count, dtype, version=content, extra_buffers=alive,
            least_buffers=alive + 1 if alive > 1 else 0,
        )  # fmt: skip

    def _heads_slot(self, name: str, columns: int, content: Ints, together: int) -> Slot:
        """A tile of the rows of one head, or of several that are loaded at once."""
        content = self._of_heads(name, content, together)
        return self._slot(name, columns * together, self._dtype, content)

    def _heads_together(self, name: str, columns: int) -> int:
        return heads_together(self._context, self._operands[name], columns, self._tiles(name))

    def _tiles(self, name: str) -> int:
        """Tiles of a head's rows."""
        return self._key_tiles if name in ("key", "value") else self._query_tiles

    def _load(
        self,
        name: str,
        slot: Slot,
        rows: Ints,
        columns: int,
        *,
        transpose: bool = False,
        together: int = 1,
    ) -> None:
        view = self._context.plan.views.of(self._operands[name])
        location = self._context.location(view.root if view.root >= 0 else self._operands[name])
        slot.tensor = location.tensor
        item, run = location.dtype.byte_count, min(columns, max(view.run_elements, 1)) * together
        is_one_piece = view.run_elements >= columns * self._size
        whole_rows = together > 1 and together == heads_beside(self._context, self._operands[name], columns)
        transfer = Transfer(
            self._context.load_queue(location), Memory.HBM, Memory.SBUF, rows * columns * together * item,
            (int(rows.max()) * columns if is_one_piece and not transpose else run) * item,
            np.full(len(rows), min(columns, self._size)) if transpose else rows, location.purpose,
            location.dtype, location.tensor, transpose=transpose, strided=not is_one_piece and not whole_rows,
        )  # fmt: skip
        self._loop.load(slot, transfer, active=first_seen(slot.version), after=location.tokens)

    def _turn(
        self, source: Slot, target: Slot, rows: Ints, columns: int | Ints, stage: int,
        active: Bools | None, *, taken: int,
    ) -> None:  # fmt: skip
        """By the Tensor engine, through PSUM; out of it in the stage `taken`."""
        loop, dtype = self._loop, source.dtype
        turning = self._turning(stage, dtype)
        options: dict[str, Any] = {"partitions": rows, "columns": columns, "active": active, "stage": stage}
        loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(source,), flags=Flag.TRANSPOSE, **options)
        loop.step(Engine.TENSOR, Opcode.TRANSPOSE, reads=(source,), writes=(turning,), elements=rows,
                  output_dtype=dtype, flags=Flag.TRANSPOSE, accumulates=True, **options)  # fmt: skip
        self._copy(turning, target, np.minimum(columns, self._size), rows, taken, active)

    def _turning(self, stage: int, dtype: DType) -> Slot:
        """Where the Tensor engine turns the tiles of a stage: they share a bank."""
        if stage not in self._banks:
            size = self._context.core.psum_bank_bytes
            self._banks[stage] = self._loop.slot(
                "turning", size, dtype, memory=Memory.PSUM, read_first=True
            )  # fmt: skip
        return self._banks[stage]

    # Products

    def _product(
        self, stationary: Slot, moving: Slot, sums: Slot, sizes: tuple[Any, Any, Any], stage: int,
        *, accumulates: bool = False,
    ) -> None:  # fmt: skip
        """`sizes`: what is contracted, columns of the stationary operand and of the moving one."""
        depth, columns, elements = sizes
        loop = self._loop
        loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(stationary,), partitions=depth, columns=columns,
                  stage=stage)  # fmt: skip
        loop.step(
            Engine.TENSOR, Opcode.MATMUL, reads=(moving, stationary), writes=(sums,), partitions=depth,
            columns=columns, elements=elements, stage=stage, accumulates=accumulates,
            flags=Flag.ACCUMULATE if accumulates else Flag.NONE,
        )  # fmt: skip

    def _sums(self, name: str, columns: int, content: Ints | None = None) -> Slot:
        return self._loop.slot(name, 4 * columns, DType.F32, memory=Memory.PSUM, version=content)

    def _weights(self) -> Slot:
        """Scores against the logarithms of their sums: what the softmax gave."""
        at, loop = self._at, self._loop
        scores = self._sums("scores", self._size)
        self._product(self._turned_query, self._turned_key, scores, (self._depth, at.rows, at.width), _SCORED)
        logarithms = self._slot("logarithms", 1, DType.F32, at.queries)
        self._load("logarithms", logarithms, at.rows, 1)
        whole = partial(loop.step, partitions=at.rows, elements=at.width, stage=_WEIGHTED)
        reads = [scores, logarithms]
        if "bias" in self._operands:
            whole(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(scores, self._bias()), writes=(scores,))
        weights = loop.slot("weights", self._size * self._dtype.byte_count, self._dtype)
        whole(Engine.SCALAR, Opcode.ACTIVATE, reads=tuple(reads), writes=(weights,), activation="exp")
        if at.masked.any():
            whole(Engine.GPSIMD, Opcode.AFFINE_SELECT, reads=(weights,), writes=(weights,), active=at.masked)
        return weights

    def _bias(self) -> Slot:
        """A tile of what is added to scores; heads that share it find it where the one before left it."""
        at, value = self._at, self._operands["bias"]
        shape = self._context.type_of(value).shape
        dtype = chip_dtype(self._context.type_of(value).dtype)
        view = self._context.plan.views.of(value)
        batch, head = np.divmod(at.queries // self._query_tiles, self._heads)
        place = np.minimum(batch, shape[0] - 1) * shape[1] + np.minimum(head, shape[1] - 1)
        which = real_positions(view.blocks, place * (shape[2] * shape[3]))
        marks = np.stack([which, at.queries % self._query_tiles, at.keys % self._key_tiles])
        content = np.cumsum(np.any(np.diff(marks, prepend=marks[:, :1]) != 0, axis=0))
        slot = self._loop.slot("bias", self._size * dtype.byte_count, dtype, version=content, extra_buffers=1)
        location = self._context.location(view.root if view.root >= 0 else value)
        slot.tensor = location.tensor
        transfer = location.load(
            self._context.load_queue(location), at.rows * at.width, int(at.width.max()), at.rows, strided=True
        )
        self._loop.load(slot, transfer, active=self._loop.first_of(content), after=location.tokens)
        return slot

    def _dropout(self, weights: Slot) -> Slot:
        """The weights that the forward pass kept; copies out of PSUM apply the scale."""
        at, size = self._at, self._size * self._dtype.byte_count
        kept = self._loop.slot("weights kept", size, self._dtype)
        self._loop.step(
            Engine.VECTOR, Opcode.DROPOUT, reads=(weights,), writes=(kept,), partitions=at.rows,
            elements=at.width, stage=_WEIGHTED,
        )  # fmt: skip
        return kept

    def _score_gradients(self, weights: Slot, kept: Slot) -> Slot:
        """weights kept x gradients of weights - weights x rows' sums of the gradient times the output."""
        at, loop = self._at, self._loop
        products = self._sums("gradients of weights", self._size)
        sizes = (self._width, at.rows, at.width)
        self._product(self._turned_gradient, self._turned_value, products, sizes, _SCORED)
        shares = self._row_sums()
        changes = loop.slot("gradients of scores", self._size * self._dtype.byte_count, self._dtype)
        whole = partial(loop.step, partitions=at.rows, elements=at.width, stage=_WEIGHTED)
        if kept is not weights:
            whole(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(products, kept), writes=(products,))
        whole(
            Engine.VECTOR, Opcode.SCALAR_TENSOR_TENSOR, reads=(products, weights, shares), writes=(changes,)
        )
        return changes

    def _row_sums(self) -> Slot:
        at = self._at
        together = self._heads_together("output", self._width)
        output = self._heads_slot("output", self._width, at.queries, together)
        self._load("output", output, at.rows, self._width, together=together)
        product = self._slot("gradient x output", self._width, DType.F32, at.queries)
        sums = self._slot("row sums", 1, DType.F32, at.queries)
        new = first_seen(at.queries)
        for opcode, reads, made in (
            (Opcode.TENSOR_TENSOR, (self._gradient, output), product),
            (Opcode.TENSOR_REDUCE, (product,), sums),
        ):
            self._loop.step(
                Engine.VECTOR, opcode, reads=reads, writes=(made,), partitions=at.rows, elements=self._width,
                active=new, stage=_TURNED,
            )  # fmt: skip
        return sums

    # Results

    def _of_keys(self, weights: Slot, changes: Slot) -> list[tuple[int, Any]]:
        """Gradients of values and keys: queries add up in PSUM."""
        at, stores = self._at, []
        sums = self._sums("sums of queries", self._width + self._depth, at.keys)
        for part, left, right, columns in (
            (2, weights, self._gradient, self._width),
            (1, changes, self._query, self._depth),
        ):
            if part not in self._results:
                continue
            self._product(left, right, sums, (at.rows, at.width, columns), _SUMMED, accumulates=True)
            stores.append(self._result(part, sums, at.keys, at.width, columns, at.last_queries))
        return stores

    def _of_queries(self, changes: Slot) -> list[tuple[int, Any]]:
        """Gradients of queries: keys add up in SBUF."""
        if 0 not in self._results:
            return []
        at, depth = self._at, self._depth
        turned = self._loop.slot(
            "turned gradients of scores", self._size * self._dtype.byte_count, self._dtype
        )
        self._turn(changes, turned, at.rows, at.width, _SUMMED, None, taken=_TAKEN)
        sums = self._sums("product of keys", depth)
        self._product(turned, self._key, sums, (at.width, at.rows, depth), _QUERIED)
        if at.last_keys.all():
            return [self._result(0, sums, at.queries, at.rows, depth, at.last_keys, _QUERIED)]
        held = self._slot("sums of keys", depth, DType.F32, at.queries)
        for opcode, reads, active in (
            (Opcode.TENSOR_COPY, (sums,), at.first_keys),
            (Opcode.TENSOR_TENSOR, (sums, held), ~at.first_keys),
        ):
            self._loop.step(
                Engine.VECTOR, opcode, reads=reads, writes=(held,), partitions=at.rows, elements=depth,
                active=active, stage=_QUERIED,
            )  # fmt: skip
        return [self._result(0, held, at.queries, at.rows, depth, at.last_keys, _QUERIED)]

    def _copy(
        self, source: Slot, target: Slot, partitions: Any, elements: Any, stage: int, active: Bools | None,
        *, accumulates: bool = False,
    ) -> None:  # fmt: skip
        """Out of PSUM, by the Scalar and the Vector engine in turn."""
        engine = (Engine.SCALAR, Engine.VECTOR)[self._copies % 2]
        self._copies += 1
        self._loop.step(
            engine, Opcode.TENSOR_COPY, reads=(source,), writes=(target,), partitions=partitions,
            elements=elements, active=active, stage=stage, accumulates=accumulates,
        )  # fmt: skip

    def _result(
        self, part: int, sums: Slot, content: Ints, rows: Ints, columns: int, last: Bools,
        stage: int = _SUMMED,
    ) -> tuple[int, Any]:  # fmt: skip
        value = self._results[part]
        location = self._context.locations[value]
        if part in self._by_tokens:
            return value, self._stored_by_tokens(part, sums, content, rows, columns, last, stage)
        made = self._loop.slot(
            "result", columns * self._dtype.byte_count, self._dtype, version=content, extra_buffers=1
        )
        self._copy(sums, made, rows, columns, stage, last)
        run = int(rows.max()) * columns
        transfer = location.store(self._context.store_queue(), rows * columns, run, rows)
        return value, self._loop.store(made, transfer, active=last)

    def _stored_by_tokens(
        self, part: int, sums: Slot, content: Ints, rows: Ints, columns: int, last: Bools, stage: int
    ) -> Step:
        """The store of a tile's rows of several heads, which lie side by side, behind the last head's."""
        location = self._context.locations[self._results[part]]
        heads, tiles = location.type.shape[2], self._query_tiles if part == 0 else self._key_tiles
        room = self._context.core.sbuf_bytes_per_partition // RESULT_SHARE
        most = max(1, room // (tiles * columns * self._dtype.byte_count))
        together = next(count for count in range(min(most, heads), 0, -1) if heads % count == 0)
        head, tile = np.divmod(content, tiles)
        made = self._slot("result", columns * together, self._dtype, head // together * tiles + tile)
        self._copy(sums, made, rows, columns, stage, last, accumulates=together > 1)
        size = rows * columns * together
        transfer = location.store(self._context.store_queue(), size, columns * together, rows)
        transfer.strided = together < heads
        return self._loop.store(made, transfer, active=last & (head % together == together - 1))
