"""The softmax of an attention block, chunk by chunk: maximum on the way out of PSUM, then exponentials."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_tools.compiler.codegen.attention_tiles import Iterations
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import needs_port
from neuron_tools.compiler.codegen.micro import External, Key, Micro, Selection
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.passes.attention import AttentionBlock
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.records.program import DType, Engine, Flag, Opcode

_STATISTICS_STAGE = 3
"""Pipeline stage at which a row's maximum is final: after product, copy and reduction."""


class AttentionSoftmax:
    """Declares what stands between the two products of an attention block."""

    _at: Iterations
    _context: Context
    _block: AttentionBlock
    _chunk: int
    _chunks: int
    _dtype: DType
    _loop: TileLoop
    _product: Slot
    _selection: Selection
    _slots: dict[Key, Slot]
    _collected: dict[Key, Slot]

    @property
    def _collects_statistics(self) -> bool:
        raise NotImplementedError

    def _collected_statistics(self, dtype: DType) -> Slot:
        raise NotImplementedError

    def _external(self, key: Key, external: External) -> None:
        raise NotImplementedError

    def _softmax(self) -> Slot:
        """Emit what stands between the products; returns the slot of a chunk's unnormalised weights."""
        scores = self._block.scores.results[0]
        wide = self._loop.slot("chunk of scores", self._chunk * 4, DType.F32)
        self._slots[scores] = wide
        for key, external in self._selection.externals.items():
            if external.value != scores:
                self._external(key, external)
        exponentials = wide
        evacuated = False
        for micro in self._selection.micros:
            if micro.shape is Shape.ROW:
                self._row(micro)
            elif micro.level == 0:
                evacuated = self._chunk_of_scores(micro, wide, evacuated)
            elif not self._is_division(micro):
                exponentials = self._exponentials(micro, exponentials)
        return exponentials

    def _chunk_of_scores(self, micro: Micro, wide: Slot, evacuated: bool) -> bool:
        """One step on a chunk before the maximum; the first reads PSUM, the last gives the maximum too."""
        if not evacuated:
            self._evacuate(micro, wide)
        elif micro.reduces is not None:
            if micro.reduces not in self._slots:
                self._loop.step(
                    Engine.VECTOR, Opcode.TENSOR_REDUCE, reads=(wide,), writes=(self._partial(micro),),
                    partitions=self._at.rows, elements=self._at.width, accumulates=True,
                )  # fmt: skip
        else:
            self._instruction(micro, [self._slots[key] for key in micro.reads if key in self._slots], wide)
        if micro.reduces != micro.writes:
            self._slots[micro.writes] = wide
        return True

    def _maximum_after(self, micro: Micro) -> Micro | None:
        """The next instruction, if it takes the row maximum of what this one makes."""
        micros = self._selection.micros
        index = micros.index(micro) + 1
        return micros[index] if index < len(micros) and micros[index].reduces is not None else None

    def _evacuate(self, micro: Micro, wide: Slot) -> None:
        """From PSUM to SBUF with the operation on the way, and with the row maximum if that comes next."""
        others = [slot for key in micro.reads if (slot := self._slots.get(key)) not in (None, wide)]
        reducing = micro if micro.reduces is not None else self._maximum_after(micro)
        one_pass = reducing is not None and (
            micro.reduces is not None or micro.opcode is Opcode.TENSOR_SCALAR
        )
        writes = (wide, self._partial(reducing)) if one_pass and reducing is not None else (wide,)
        self._loop.step(
            Engine.VECTOR, micro.opcode if micro.reduces is None else Opcode.TENSOR_SCALAR,
            reads=(self._product, *others), writes=writes, partitions=self._at.rows, elements=self._at.width,
            flags=Flag.REDUCES if one_pass else Flag.NONE, accumulates=True,
        )  # fmt: skip

    def _partial(self, micro: Micro) -> Slot:
        """Where a row's result goes: one number per chunk, joined by `_combine` if there are several."""
        assert micro.reduces is not None
        key: Key = ("partial", self._selection.micros.index(micro))
        if key not in self._slots:
            size = 4 * self._chunks
            self._slots[key] = partial = self._loop.slot("statistics", size, DType.F32, version=self._at.tile)
            self._slots[micro.reduces] = (
                partial if self._chunks == 1
                else self._loop.slot("statistics", 4, DType.F32, version=self._at.tile)
            )  # fmt: skip
        return self._slots[key]

    def _combine(self, micro: Micro, stage: int) -> None:
        assert micro.reduces is not None
        if self._chunks == 1:
            return
        self._loop.step(
            Engine.VECTOR, Opcode.TENSOR_REDUCE, reads=(self._partial(micro),),
            writes=(self._slots[micro.reduces],), partitions=self._at.rows, elements=self._at.chunk + 1,
            active=self._at.last, stage=stage,
        )  # fmt: skip

    def _exponentials(self, micro: Micro, source: Slot) -> Slot:
        """exp(score - maximum) of a chunk with its row sum, once the maximum of all chunks is known."""
        at = self._at
        if source.name == "chunk of scores":
            maximum = next(m for m in self._selection.micros if m.reduces is not None)
            self._combine(maximum, _STATISTICS_STAGE - 1)
        if micro.opcode is Opcode.TENSOR_REDUCE:
            partial = self._partial(micro)
            self._loop.step(Engine.VECTOR, micro.opcode, reads=(source,), writes=(partial,),
                            partitions=at.rows, elements=at.width, accumulates=True)  # fmt: skip
            self._combine_sum(micro)
            return source
        is_last = micro.reduces is not None or self._selection.micros[-1] is micro
        is_dropout = micro.opcode is Opcode.DROPOUT
        dtype = self._dtype if is_last or is_dropout or micro.activation == "exp" else DType.F32
        target = self._loop.slot("weights", self._chunk * dtype.byte_count, dtype)
        rows = [self._slots[key] for key in micro.reads if key in self._slots]
        reads = (source, *(slot for slot in rows if slot.name in ("statistics", "row", "column")))
        writes: tuple[Slot, ...] = (target,)
        if micro.reduces is not None:
            writes = (target, self._partial(micro))
        engine = Engine.SCALAR if Engine.SCALAR in micro.engines else Engine.VECTOR
        self._loop.step(
            engine, micro.opcode, reads=reads, writes=writes, partitions=at.rows, elements=at.width,
            activation=micro.activation, flags=micro.flags,
            stage=self._exponential_stage + is_dropout,
        )  # fmt: skip
        self._slots[micro.writes] = target
        if micro.reduces is not None:
            self._combine_sum(micro)
        return target

    @property
    def _exponential_stage(self) -> int:
        """All chunks of a tile are there and its maximum is final."""
        return self._chunks + _STATISTICS_STAGE

    @property
    def _weighted_stage(self) -> int:
        """Where weights are as the values meet them."""
        loses = any(micro.opcode is Opcode.DROPOUT for micro in self._selection.micros)
        return self._exponential_stage + loses

    def _combine_sum(self, micro: Micro) -> None:
        self._combine(micro, self._exponential_stage + 1)

    def _is_division(self, micro: Micro) -> bool:
        """Whether it is left to the result, which is smaller than the weights."""
        return micro.source in (self._block.normalised, self._block.scaled)

    def _row(self, micro: Micro) -> None:
        """An operation on one number per query; tiles do not wait for what is only stored."""
        is_stored = micro.writes in self._selection.stored.values()
        collects = is_stored and self._collects_statistics
        slot = self._loop.slot("statistics", 4, DType.F32, version=self._at.tile)
        if collects:
            slot = self._collected[micro.writes] = self._collected_statistics(DType.F32)
        reads = [self._slots[key] for key in micro.reads if key in self._slots]
        engine = self._spare_engine(micro) if is_stored else micro.engines[0]
        self._loop.step(
            engine, micro.opcode, reads=reads, writes=(slot,),
            partitions=self._at.rows, elements=1, activation=micro.activation, active=self._at.last,
            accumulates=collects,
        )  # fmt: skip
        self._slots[micro.writes] = slot

    def _spare_engine(self, micro: Micro) -> Engine:
        """GpSimd, where it shares no port with the Vector engine, which all chunks of scores pass."""
        core = self._context.core
        waits = needs_port(core, Engine.VECTOR, micro.opcode, DType.F32)
        return micro.engines[0] if waits else micro.engines[-1]

    def _instruction(self, micro: Micro, reads: Sequence[Slot], target: Slot) -> None:
        self._loop.step(
            Engine.VECTOR if Engine.VECTOR in micro.engines else micro.engines[0], micro.opcode, reads=reads,
            writes=(target,), partitions=self._at.rows, elements=self._at.width, activation=micro.activation,
        )  # fmt: skip
