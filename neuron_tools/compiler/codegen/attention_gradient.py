"""Code generation for the backward of attention: scores and their gradients never reach HBM.

An iteration is a tile of queries against a tile of keys (Dao et al., FlashAttention-2, section 3.2). Scores
are computed again and become weights by the logarithms of their sums, which the forward pass kept. Products
of weights and of the scores' gradients with queries' rows add up in PSUM for all queries of a tile of keys,
those with keys for all keys of a tile of queries, in SBUF where these are many. Products of one iteration,
weights of the one before and the sums of that before run at one time.
"""

from __future__ import annotations

from functools import partial

from neuron_tools.arrays import Bools
from neuron_tools.compiler.codegen.attention_gradient_parts import Stage
from neuron_tools.compiler.codegen.attention_gradient_results import GradientResults
from neuron_tools.compiler.codegen.attention_tiles import first_seen
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.tables import load_tables
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import DType, Engine, Opcode


def generate_attention_gradient(context: Context, group: Group) -> None:
    """Emit the gradients of queries, keys and values."""
    _AttentionGradient(context, group).generate()


class _AttentionGradient(GradientResults):
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

    def _weights(self) -> Slot:
        """Scores against the logarithms of their sums: what the softmax gave."""
        at, loop = self._at, self._loop
        scores = self._products
        self._product(
            self._turned_query, self._turned_key, scores, (self._depth, at.rows, at.width), Stage.SCORED
        )
        logarithms = self._logarithms()
        if at.masked.any():
            self._add_to_scores(self._future(), at.masked)
        if "bias" in self._operands:
            self._add_to_scores(self._bias())
        weights = loop.slot("weights", self._size * self._dtype.byte_count, self._dtype)
        loop.step(
            Engine.SCALAR, Opcode.ACTIVATE, reads=(scores, logarithms), writes=(weights,), activation="exp",
            partitions=at.rows, elements=at.width, stage=Stage.WEIGHTED,
        )  # fmt: skip
        return weights

    def _add_to_scores(self, added: Slot, active: Bools | None = None) -> None:
        """The identity times what is added, as the Tensor engine has time for it."""
        at, dtype = self._at, added.dtype
        identity = self._constant("identity", dtype)
        self._product(
            identity,
            added,
            self._products,
            (at.rows, at.rows, at.width),
            Stage.SCORED,
            adds=True,
            active=active,
        )

    def _dropout(self, weights: Slot) -> Slot:
        """The weights that the forward pass kept; copies out of PSUM apply the scale."""
        at, size = self._at, self._size * self._dtype.byte_count
        kept = self._loop.slot("weights kept", size, self._dtype)
        self._loop.step(
            Engine.VECTOR, Opcode.DROPOUT, reads=(weights,), writes=(kept,), partitions=at.rows,
            elements=at.width, stage=Stage.KEPT if self._takes_weights is Engine.SCALAR else Stage.WEIGHTED,
        )  # fmt: skip
        return kept

    def _score_gradients(self, weights: Slot, kept: Slot) -> Slot:
        """weights kept x gradients of weights - weights x rows' sums of the gradient times the output."""
        at, loop = self._at, self._loop
        products = self._products
        sizes = (self._width, at.rows, at.width)
        self._product(self._turned_gradient, self._turned_value, products, sizes, Stage.SCORED)
        shares = self._row_sums()
        changes = loop.slot("gradients of scores", self._size * self._dtype.byte_count, self._dtype)
        whole = partial(loop.step, partitions=at.rows, elements=at.width)
        in_sbuf = self._takes_weights is Engine.SCALAR
        if in_sbuf:
            taken = loop.slot("gradients of weights", self._size * self._dtype.byte_count, self._dtype)
            opcode = Opcode.TENSOR_COPY if self._loses else Opcode.TENSOR_SCALAR
            reads = (products,) if self._loses else (products, shares)
            whole(Engine.SCALAR, opcode, reads=reads, writes=(taken,), stage=Stage.WEIGHTED)
            products = taken
        if self._loses:
            whole(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(products, kept), writes=(products,),
                  stage=Stage.KEPT if in_sbuf else Stage.WEIGHTED)  # fmt: skip
        is_shifted = in_sbuf and not self._loses
        whole(
            Engine.VECTOR, Opcode.TENSOR_TENSOR if is_shifted else Opcode.SCALAR_TENSOR_TENSOR,
            reads=(products, weights, *(() if is_shifted else (shares,))), writes=(changes,),
            stage=Stage.CHANGED if in_sbuf else Stage.WEIGHTED,
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
            (Opcode.TENSOR_TENSOR, (self._gradient, output), product, Stage.TURNED),
            (Opcode.TENSOR_REDUCE, (product,), sums, Stage.READY),
        ):
            self._loop.step(
                Engine.VECTOR, opcode, reads=reads, writes=(made,), partitions=at.rows, elements=self._width,
                active=new, stage=stage,
            )  # fmt: skip
        return sums
