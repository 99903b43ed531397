"""What the backward of attention loads: rows of operands, logarithms of sums, and what is added to scores."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.attention_gradient_parts import GradientParts, Stage
from neuron_tools.compiler.codegen.attention_tiles import first_seen, heads_beside, heads_together
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.views import real_positions
from neuron_tools.records.program import DType, Engine, Opcode


class GradientOperands(GradientParts):
    """Declares the loads, and the turning of what products need the other way round."""

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
        self._turn(plain, self._turning, turned, rows, columns * at_once, Stage.TURNED, first_seen(content))
        return plain, turned

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

    def _heads_slot(self, name: str, columns: int, content: Ints) -> Slot:
        """A tile of the rows of one head, or of several that are loaded at once."""
        together = self._heads_together(name, columns)
        content = self._of_heads(name, content, together)
        return self._slot(name, columns * together, self._dtype, content)

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

    def _heads_together(self, name: str, columns: int) -> int:
        return heads_together(self._context, self._operands[name], columns, self._tiles(name))

    def _tiles(self, name: str) -> int:
        """Tiles of a head's rows."""
        return self._key_tiles if name in ("key", "value") else self._query_tiles

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
        self._turn(rows, self._products, turned, count, int(at.rows.max()), Stage.SCORED, new)
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
