"""The results of the backward of attention: sums over queries or keys, and their way to HBM."""

from __future__ import annotations

from typing import Any

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.attention_gradient_banks import GradientBanks
from neuron_tools.compiler.codegen.attention_gradient_parts import Stage
from neuron_tools.compiler.codegen.movement import fill_tensor
from neuron_tools.compiler.codegen.slot import Slot, Step
from neuron_tools.records.program import DType, Engine, Flag, Opcode

_OPERANDS = ("query", "key", "value")
"""Of which operand each part is the gradient."""
RESULT_SHARE = 16
"""A gradient's tiles take at most one part in so many of a partition while they wait for further heads."""


class GradientResults(GradientBanks):
    """Declares the products that add up to gradients of queries, keys and values, and the stores of these."""

    _query: Slot
    _gradient: Slot
    _key: Slot

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
            self._product(left, right, sums, (at.rows, at.width, columns), Stage.SUMMED, adds=True)
            stores.append(self._result(part, sums, at.keys, at.width, columns, at.last_queries, Stage.TAKEN))
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
            changes, self._turning_changes, turned, at.rows, at.width, Stage.SUMMED, None, is_loaded=is_loaded
        )
        sums, adds = self._query_sums, self._met_together() is not None
        self._product(turned, self._key, sums, (at.width, at.rows, depth), Stage.QUERIED, adds=adds)
        if not adds:
            sums = self._held_sums(sums)
        return [self._result(0, sums, at.queries, at.rows, depth, at.last_keys, Stage.DONE)]

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
                active=active, stage=Stage.DONE,
                flags=Flag.SECOND_OPERAND_PSUM if len(reads) > 1 else Flag.NONE,
            )  # fmt: skip
        return held

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
        heads, name = location.type.shape[2], _OPERANDS[part]
        tiles = self._tiles(name)
        room = self._context.core.sbuf_bytes_per_partition // RESULT_SHARE
        most = max(1, room // (tiles * columns * self._dtype.byte_count))
        together = next(count for count in range(min(most, heads), 0, -1) if heads % count == 0)
        made = self._slot("result", columns * together, self._dtype, self._of_heads(name, content, together))
        self._copy(sums, made, rows, columns, stage, last, accumulates=together > 1)
        size = rows * columns * together
        transfer = location.store(self._context.store_queue(), size, columns * together, rows)
        transfer.strided = together < heads
        return self._loop.store(made, transfer, active=last & (content // tiles % together == together - 1))

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
