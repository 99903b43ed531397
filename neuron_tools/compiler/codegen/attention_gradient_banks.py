"""PSUM in the backward of attention: which banks hold what, and which engine has time to read them."""

from __future__ import annotations

from functools import partial

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.attention_gradient_operands import GradientOperands
from neuron_tools.compiler.codegen.attention_tiles import first_seen
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.records.program import DType, Engine, Memory, Opcode


class GradientBanks(GradientOperands):
    """Declares the banks and counts the work that engines have in any case."""

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
