"""Code generation for the backward of attention: scores and their gradients never reach HBM.

An iteration is a tile of queries against a tile of keys (Dao et al., FlashAttention-2, section 3.2). Scores
are computed again and become weights by the logarithms of their sums, which the forward pass kept. Products
of weights and of the scores' gradients with queries' rows add up in PSUM for all queries of a tile of keys,
those with keys for all keys of a tile of queries, in SBUF where these are many. Products of one iteration,
weights of the one before and the sums of that before run at one time.
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
from neuron_tools.compiler.codegen.engines import instruction_ns
from neuron_tools.compiler.codegen.movement import fill_tensor
from neuron_tools.compiler.codegen.psum_readers import PsumReaders
from neuron_tools.compiler.codegen.slot import Slot, Step
from neuron_tools.compiler.codegen.tables import load_tables
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.opcodes import ATTENTION_OPERANDS
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.compiler.views import real_positions
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

RESULT_SHARE = 16
"""A gradient's tiles take at most one part in so many of a partition while they wait for further heads."""
_TURNED, _READY, _SCORED, _WEIGHTED, _KEPT, _CHANGED, _SUMMED, _TAKEN, _QUERIED, _DONE = range(1, 11)
"""Stages: operands are turned, taken out of PSUM and multiplied; scores become weights, of which some are
lost, and with them gradients of scores; both are multiplied again, and what comes of it is taken out of PSUM;
these gradients, turned, are multiplied with keys, and that is taken out. With fewer stages an engine would
wait for what another has only begun in the same one, and in the end all for one another."""
_READERS = (Engine.SCALAR, Engine.VECTOR)


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
        self._key_heads, self._shared = key_heads, heads // key_heads
        self._size = context.core.tensor_columns
        self._heads = query.shape[1]
        sizes = (query.shape[-2], key.shape[-2])
        is_causal = bool(operation.attributes["is_causal"])
        self._by_tokens = operation.attributes.get("by_tokens", ())
        self._loses = bool(operation.attributes["dropout"])
        self._unseen = max(0, sizes[1] - sizes[0]) if is_causal else 0
        sizes = (sizes[0], sizes[1] - self._unseen)
        self._at = _Tiles.of(heads, self._shared, sizes, self._size, is_causal=is_causal)
        self._query_tiles, self._key_tiles = (-(-size // self._size) for size in sizes)
        self._dtype = chip_dtype(query.dtype)
        flops = 2 * heads * sizes[0] * sizes[1] * (3 * self._depth + 2 * self._width)
        self._hlo = context.hlo(group, model_flops=flops)
        self._loop = TileLoop(context, len(self._at.keys), self._hlo)
        self._readers = PsumReaders(context.core)
        for value in operation.results:
            context.define(value)

    def generate(self) -> None:
        """Declare the loop and append it."""
        load_tables(self._context, self._loop, {"exp": None})
        at = self._at
        self._count_fixed_work()
        self._declare_banks()
        self._query, self._turned_query = self._tile("query", at.rows)
        self._gradient, self._turned_gradient = self._tile("gradient", at.rows)
        self._key, self._turned_key = self._tile("key", at.width)
        _, self._turned_value = self._tile("value", at.width)
        weights = self._weights()
        kept = self._dropout(weights) if self._loses else weights
        changes = self._score_gradients(weights, kept)
        stores = [*self._of_keys(kept, changes), *self._of_queries(changes)]
        self._loop.emit()
        for value, step in stores:
            self._context.complete(value, self._loop.completion(step))
        if self._unseen:
            self._fill_unseen()

    def _fill_unseen(self) -> None:
        """Zeros for the keys and values of each head that lie in the future of all queries."""
        rows = self._unseen
        columns_of = {1: self._depth, 2: self._width}
        for part, columns in columns_of.items():
            if part not in self._results:
                continue
            location = self._context.locations[self._results[part]]
            beside = location.type.shape[2] if part in self._by_tokens else 1
            tokens = fill_tensor(
                self._context, location, self._hlo,
                count=self._key_heads * rows * columns, run=rows * columns * beside,
            )  # fmt: skip
            self._context.complete(self._results[part], tokens)

    # Engines

    def _count_fixed_work(self) -> None:
        """Exponentials, row sums and weights that are lost have their engines; so do gradients of scores,
        which are made on the way out of PSUM by the Vector engine, or in SBUF behind the Scalar engine.
        """
        pairs = self._size
        self._readers.add(Engine.SCALAR, self._ns(Engine.SCALAR, Opcode.ACTIVATE, pairs))
        rows = self._ns(Engine.VECTOR, Opcode.TENSOR_TENSOR, self._width, source=Memory.SBUF)
        rows += self._ns(Engine.VECTOR, Opcode.TENSOR_REDUCE, self._width, source=Memory.SBUF)
        self._readers.add(Engine.VECTOR, rows / self._key_tiles, in_psum=False)
        in_sbuf = partial(self._ns, Engine.VECTOR, elements=pairs, dtype=self._dtype, source=Memory.SBUF)
        if self._loses:
            lost = in_sbuf(Opcode.DROPOUT) + in_sbuf(Opcode.SCALAR_TENSOR_TENSOR)
            self._readers.add(Engine.VECTOR, lost, in_psum=False)
        joined = Opcode.TENSOR_TENSOR if self._loses else Opcode.SCALAR_TENSOR_TENSOR
        moving = Opcode.TENSOR_COPY if self._loses else Opcode.TENSOR_SCALAR
        self._takes_weights = self._readers.choose(
            {Engine.SCALAR: self._ns(Engine.SCALAR, moving, pairs),
             Engine.VECTOR: self._ns(Engine.VECTOR, joined, pairs)},
            after_ns=in_sbuf(Opcode.TENSOR_TENSOR),
        )  # fmt: skip

    def _ns(
        self, engine: Engine, opcode: Opcode, elements: int, dtype: DType = DType.F32,
        source: Memory = Memory.PSUM,
    ) -> float:  # fmt: skip
        return instruction_ns(self._context.core, engine, opcode, elements, dtype, source)

    # PSUM

    def _declare_banks(self) -> None:
        """Which banks hold what: two, where each iteration fills them anew and there are enough."""
        at, each = self._at, np.arange(len(self._at.keys))
        new = [first_seen(self._content_turned(name)) for name in ("query", "gradient", "key", "value")]
        met = self._met_together()
        is_crowded = met is None and self._sums_wait
        self._turning = self._bank("turning", np.cumsum(np.any(new, axis=0)) - 1, self._dtype, is_crowded)
        self._products = self._bank("products", each)
        self._key_sums = self._bank("sums of queries", at.keys)
        self._turning_changes = self._bank("turning gradients", each) if self._sums_wait else self._key_sums
        self._query_sums = self._bank("sums of keys", each if met is None else met)

    @property
    def _sums_wait(self) -> bool:
        """Whether a tile of keys meets several tiles of queries."""
        return not np.all(self._at.last_queries)

    def _bank(self, name: str, content: Ints, dtype: DType = DType.F32, is_crowded: bool = False) -> Slot:
        is_kept = len(np.unique(content)) < len(content)
        return self._loop.slot(
            name, self._context.core.psum_bank_bytes, dtype, memory=Memory.PSUM, version=content,
            read_first=is_kept or is_crowded,
        )  # fmt: skip

    def _met_together(self) -> Ints | None:
        """The number of the queries that meet the same keys; None where a bank has no room for their sums."""
        at, together = self._at, self._query_tiles * self._shared
        fits = 4 * self._depth * together <= self._context.core.psum_bank_bytes
        return at.queries // together if fits else None

    # Operands

    def _tile(self, name: str, rows: Ints) -> tuple[Slot, Slot]:
        """Rows of an operand, and the same turned by the Tensor engine, as many heads' at once as it has
        rows for. Short rows are loaded with those of the heads beside them.
        """
        columns, content = self._columns(name), self._content(name)
        plain = self._heads_slot(name, columns, content)
        self._load(name, plain, rows, columns, together=self._heads_together(name, columns))
        content = self._content_turned(name)
        turned = self._slot(f"turned {name}", self._size, self._dtype, content)
        at_once = self._turned_at_once(name)
        self._turn(plain, self._turning, turned, rows, columns * at_once, _TURNED, first_seen(content))
        return plain, turned

    def _columns(self, name: str) -> int:
        return self._depth if name in ("query", "key") else self._width

    def _content(self, name: str) -> Ints:
        return self._at.keys if name in ("key", "value") else self._at.queries

    def _content_turned(self, name: str) -> Ints:
        return self._of_heads(name, self._content(name), self._turned_at_once(name))

    def _turned_at_once(self, name: str) -> int:
        columns = self._columns(name)
        return math.gcd(self._heads_together(name, columns), max(1, self._size // columns))

    def _of_heads(self, name: str, content: Ints, together: int) -> Ints:
        """The number of an operand's tile where those of so many heads are one."""
        tiles = self._tiles(name)
        head, tile = np.divmod(content, tiles)
        return np.asarray(head // together * tiles + tile)

    def _slot(self, name: str, columns: int, dtype: DType, content: Ints) -> Slot:
        """A tile; those that later iterations meet again stay until the last has."""
        return self._loop.slot(name, columns * dtype.byte_count, dtype, version=content, extra_buffers=1)

    def _heads_slot(self, name: str, columns: int, content: Ints) -> Slot:
        """A tile of the rows of one head, or of several that are loaded at once."""
        together = self._heads_together(name, columns)
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
        together: int = 1,
    ) -> None:
        view = self._context.plan.views.of(self._operands[name])
        location = self._context.location(view.root if view.root >= 0 else self._operands[name])
        slot.tensor = location.tensor
        beside = heads_beside(self._context, self._operands[name], columns)
        lies_together = together == beside and view.run_elements >= columns
        transfer = location.load(
            self._context.load_queue(location), rows * columns * together,
            min(columns, max(view.run_elements, 1)) * together, rows, strided=not lies_together,
        )  # fmt: skip
        self._loop.load(slot, transfer, active=first_seen(slot.version), after=location.tokens)

    def _turn(
        self, source: Slot, turning: Slot, target: Slot, rows: Ints, columns: int | Ints, stage: int,
        active: Bools | None, *, is_loaded: bool = False,
    ) -> None:  # fmt: skip
        """By the Tensor engine, through PSUM; out of it in the next stage.

        `is_loaded`: The source is the stationary operand already.
        """
        halves, dtype = self._turned_as(source.dtype)
        step = partial(
            self._loop.step, Engine.TENSOR, reads=(source,), partitions=rows, columns=columns, active=active,
            stage=stage, flags=Flag.TRANSPOSE, input_dtype=dtype, output_dtype=dtype,
        )  # fmt: skip
        for _ in range(halves):
            if not is_loaded:
                step(Opcode.LDWEIGHTS)
            step(Opcode.TRANSPOSE, writes=(turning,), elements=rows, accumulates=True)
        self._copy(turning, target, np.minimum(columns, self._size), rows * halves, stage + 1, active, dtype)

    def _turned_as(self, dtype: DType) -> tuple[int, DType]:
        """How many times an operand is turned, as elements of which type: those of four bytes in halves,
        where the Tensor engine is quicker so. Nothing is computed with them on the way.
        """
        halves = dtype.byte_count // DType.BF16.byte_count
        is_slow = halves * self._context.core.tensor_speed_f32_transpose < 1
        return (halves, DType.BF16) if halves > 1 and is_slow else (1, dtype)

    # Products

    def _product(
        self, stationary: Slot, moving: Slot, sums: Slot, sizes: tuple[Any, Any, Any], stage: int,
        *, adds: bool = False, active: Bools | None = None,
    ) -> None:  # fmt: skip
        """`sizes`: what is contracted, columns of the stationary operand and of the moving one."""
        depth, columns, elements = sizes
        loop = self._loop
        loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(stationary,), partitions=depth, columns=columns,
                  stage=stage, active=active)  # fmt: skip
        loop.step(
            Engine.TENSOR, Opcode.MATMUL, reads=(moving, stationary), writes=(sums,), partitions=depth,
            columns=columns, elements=elements, stage=stage, accumulates=True,
            active=active, flags=Flag.ACCUMULATE if adds else Flag.NONE,
        )  # fmt: skip

    def _weights(self) -> Slot:
        """Scores against the logarithms of their sums: what the softmax gave."""
        at, loop = self._at, self._loop
        scores = self._products
        self._product(self._turned_query, self._turned_key, scores, (self._depth, at.rows, at.width), _SCORED)
        logarithms = self._logarithms()
        if at.masked.any():
            self._add_to_scores(self._future(), at.masked)
        if "bias" in self._operands:
            self._add_to_scores(self._bias())
        weights = loop.slot("weights", self._size * self._dtype.byte_count, self._dtype)
        loop.step(
            Engine.SCALAR, Opcode.ACTIVATE, reads=(scores, logarithms), writes=(weights,), activation="exp",
            partitions=at.rows, elements=at.width, stage=_WEIGHTED,
        )  # fmt: skip
        return weights

    def _add_to_scores(self, added: Slot, active: Bools | None = None) -> None:
        """The identity times what is added, as the Tensor engine has time for it."""
        at, dtype = self._at, added.dtype
        identity = self._constant("identity", dtype)
        self._product(
            identity, added, self._products, (at.rows, at.rows, at.width), _SCORED, adds=True, active=active
        )

    def _future(self) -> Slot:
        """Minus infinity for the keys that lie in the future of a query, in tiles on the diagonal."""
        return self._constant("future", self._dtype)

    def _constant(self, name: str, dtype: DType) -> Slot:
        """A square whose elements on one side of the diagonal, or on it, are one number."""
        first = np.arange(len(self._at.keys)) == 0
        slot = self._loop.slot(name, self._size * dtype.byte_count, dtype, stationary=True)
        step = partial(self._loop.step, Engine.GPSIMD, writes=(slot,), elements=self._size, active=first)
        step(Opcode.MEMSET, stage=0)
        step(Opcode.AFFINE_SELECT, reads=(slot,), stage=0)
        return slot

    def _logarithms(self) -> Slot:
        """Of the sums of many tiles' rows: each tile's are one row in HBM, and are turned on chip."""
        views, value = self._context.plan.views, self._operands["logarithms"]
        if views.layout(value).root != views.of(value).root:
            return self._logarithms_of_tokens()
        at, size = self._at, self._size
        block = at.queries // size
        new = first_seen(block)
        rows = self._slot("rows of logarithms", size, DType.F32, block)
        turned = self._slot("logarithms", size, DType.F32, block)
        location = self._context.location(self._operands["logarithms"])
        rows.tensor = location.tensor
        sizes = np.zeros(int(at.queries.max()) + 1, np.int64)
        sizes[at.queries] = at.rows
        starts = np.arange(0, len(sizes), size)
        count = np.add.reduceat(np.ones_like(sizes), starts)[block]
        transfer = location.load(
            self._context.load_queue(location),
            np.add.reduceat(sizes, starts)[block],
            int(at.rows.max()),
            count,
        )
        self._loop.load(rows, transfer, active=new, after=location.tokens)
        self._turn(rows, self._products, turned, count, int(at.rows.max()), _SCORED, new)
        return turned

    def _logarithms_of_tokens(self) -> Slot:
        """The same of a token's heads, which lie side by side: queries are on partitions as they lie."""
        at, layout = self._at, self._context.plan.views.layout(self._operands["logarithms"])
        head = layout.dims[-2]
        together = head[-1][0] if head and head[-1][1] == 1 else 1
        loaded = self._slot("logarithms", together, DType.F32, self._of_heads("query", at.queries, together))
        location = self._context.location(layout.root)
        loaded.tensor = location.tensor
        transfer = location.load(
            self._context.load_queue(location), at.rows * together, together, at.rows,
            strided=together < self._heads,
        )  # fmt: skip
        self._loop.load(loaded, transfer, active=first_seen(loaded.version), after=location.tokens)
        return loaded

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
        width = int(at.width.max())
        transfer = location.load(
            self._context.load_queue(location), at.rows * at.width, width, at.rows, strided=width < shape[3]
        )
        self._loop.load(slot, transfer, active=self._loop.first_of(content), after=location.tokens)
        return slot

    def _dropout(self, weights: Slot) -> Slot:
        """The weights that the forward pass kept; copies out of PSUM apply the scale."""
        at, size = self._at, self._size * self._dtype.byte_count
        kept = self._loop.slot("weights kept", size, self._dtype)
        self._loop.step(
            Engine.VECTOR, Opcode.DROPOUT, reads=(weights,), writes=(kept,), partitions=at.rows,
            elements=at.width, stage=_KEPT if self._takes_weights is Engine.SCALAR else _WEIGHTED,
        )  # fmt: skip
        return kept

    def _score_gradients(self, weights: Slot, kept: Slot) -> Slot:
        """weights kept x gradients of weights - weights x rows' sums of the gradient times the output."""
        at, loop = self._at, self._loop
        products = self._products
        sizes = (self._width, at.rows, at.width)
        self._product(self._turned_gradient, self._turned_value, products, sizes, _SCORED)
        shares = self._row_sums()
        changes = loop.slot("gradients of scores", self._size * self._dtype.byte_count, self._dtype)
        whole = partial(loop.step, partitions=at.rows, elements=at.width)
        in_sbuf = self._takes_weights is Engine.SCALAR
        if in_sbuf:
            taken = loop.slot("gradients of weights", self._size * self._dtype.byte_count, self._dtype)
            opcode = Opcode.TENSOR_COPY if self._loses else Opcode.TENSOR_SCALAR
            reads = (products,) if self._loses else (products, shares)
            whole(Engine.SCALAR, opcode, reads=reads, writes=(taken,), stage=_WEIGHTED)
            products = taken
        if self._loses:
            whole(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(products, kept), writes=(products,),
                  stage=_KEPT if in_sbuf else _WEIGHTED)  # fmt: skip
        is_shifted = in_sbuf and not self._loses
        whole(
            Engine.VECTOR, Opcode.TENSOR_TENSOR if is_shifted else Opcode.SCALAR_TENSOR_TENSOR,
            reads=(products, weights, *(() if is_shifted else (shares,))), writes=(changes,),
            stage=_CHANGED if in_sbuf else _WEIGHTED,
        )  # fmt: skip
        return changes

    def _row_sums(self) -> Slot:
        at = self._at
        together = self._heads_together("output", self._width)
        output = self._heads_slot("output", self._width, at.queries)
        self._load("output", output, at.rows, self._width, together=together)
        product = self._slot("gradient x output", self._width, DType.F32, at.queries)
        sums = self._slot("row sums", 1, DType.F32, at.queries)
        new = first_seen(at.queries)
        for opcode, reads, made, stage in (
            (Opcode.TENSOR_TENSOR, (self._gradient, output), product, _TURNED),
            (Opcode.TENSOR_REDUCE, (product,), sums, _READY),
        ):
            self._loop.step(
                Engine.VECTOR, opcode, reads=reads, writes=(made,), partitions=at.rows, elements=self._width,
                active=new, stage=stage,
            )  # fmt: skip
        return sums

    # Results

    def _of_keys(self, weights: Slot, changes: Slot) -> list[tuple[int, Any]]:
        """Gradients of values and keys: queries add up in PSUM."""
        at, stores = self._at, []
        sums = self._key_sums
        for part, left, right, columns in (
            (2, weights, self._gradient, self._width),
            (1, changes, self._query, self._depth),
        ):
            if part not in self._results:
                continue
            self._product(left, right, sums, (at.rows, at.width, columns), _SUMMED, adds=True)
            stores.append(self._result(part, sums, at.keys, at.width, columns, at.last_queries, _TAKEN))
        return stores

    def _of_queries(self, changes: Slot) -> list[tuple[int, Any]]:
        """Gradients of queries: keys add up in PSUM, or in SBUF where there are too many queries."""
        if 0 not in self._results:
            return []
        at, depth = self._at, self._depth
        turned = self._loop.slot(
            "turned gradients of scores", self._size * self._dtype.byte_count, self._dtype
        )
        is_loaded = 1 in self._results and self._dtype.byte_count <= DType.BF16.byte_count
        self._turn(
            changes, self._turning_changes, turned, at.rows, at.width, _SUMMED, None, is_loaded=is_loaded
        )
        sums, adds = self._query_sums, self._met_together() is not None
        self._product(turned, self._key, sums, (at.width, at.rows, depth), _QUERIED, adds=adds)
        if not adds:
            sums = self._held_sums(sums)
        return [self._result(0, sums, at.queries, at.rows, depth, at.last_keys, _DONE)]

    def _held_sums(self, sums: Slot) -> Slot:
        """Sums of keys in SBUF."""
        at, depth = self._at, self._depth
        held = self._slot("sums of keys", depth, DType.F32, at.queries)
        for opcode, reads, active in (
            (Opcode.TENSOR_COPY, (sums,), at.first_keys),
            (Opcode.TENSOR_TENSOR, (held, sums), ~at.first_keys),
        ):
            self._loop.step(
                Engine.VECTOR, opcode, reads=reads, writes=(held,), partitions=at.rows, elements=depth,
                active=active, stage=_DONE, flags=Flag.SECOND_OPERAND_PSUM if len(reads) > 1 else Flag.NONE,
            )  # fmt: skip
        return held

    def _copy(
        self, source: Slot, target: Slot, partitions: Any, elements: Any, stage: int, active: Bools | None,
        dtype: DType | None = None, *, accumulates: bool = False,
    ) -> None:  # fmt: skip
        """Out of PSUM by the Scalar or the Vector engine; as elements of a `dtype` where they only move."""
        count, share = int(np.max(elements)), 1.0 if active is None else float(active.mean())
        engine = self._readers.choose(
            {each: self._ns(each, Opcode.TENSOR_COPY, count, dtype or source.dtype) for each in _READERS},
            share=share,
        )
        self._loop.step(
            engine, Opcode.TENSOR_COPY, reads=(source,), writes=(target,), partitions=partitions,
            elements=elements, active=active, stage=stage, accumulates=accumulates,
            input_dtype=dtype, output_dtype=dtype,
        )  # fmt: skip

    def _result(
        self, part: int, sums: Slot, content: Ints, rows: Ints, columns: int, last: Bools, stage: int
    ) -> tuple[int, Any]:  # fmt: skip
        value = self._results[part]
        location = self._context.locations[value]
        if part in self._by_tokens:
            return value, self._stored_by_tokens(part, sums, content, rows, columns, last, stage)
        made = self._loop.slot(
            "result", columns * self._dtype.byte_count, self._dtype, version=content, extra_buffers=1
        )
        self._copy(sums, made, rows, columns, stage, last)
        transfer = location.store(self._context.store_queue(), rows * columns, columns, rows)
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
