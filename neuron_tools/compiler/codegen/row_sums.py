"""Reductions over the rows of a loop group: across partitions, complete when all rows have been seen.

Sums are products with ones where the Tensor engine has time for them. The tile moves past the ones, and its
columns' sums lie along a row of PSUM; or, where PSUM has no room for so many columns, blocks of the tile are
stationary and a column of ones moves past each: a block's sums then take one column, turned at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.engines import busiest_ns, instruction_ns
from neuron_tools.compiler.codegen.loop_state import LoopState
from neuron_tools.compiler.codegen.micro import Key, Micro
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.tables import IDENTITY
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

ACCUMULATOR_BANKS = 6
"""PSUM banks that reductions over rows may hold for a whole loop; two stay free for others."""
EXACT_COMBINATIONS = ("maximum", "minimum")
"""They choose among the elements, so that the type of these holds the result too."""


class RowSums(LoopState):
    """Declares the steps of reductions over rows."""

    def _choose_products(self) -> None:
        """Decide which sums over rows are products with ones, one sum after the other.

        It depends on what else the Vector engine has to do, and on the type: fp32 products take four passes.
        """
        sums = [result for _, result, kind in self._selection.partition_reductions if kind == "add"]
        self._multiplied = {result for result in sums if self._is_scalar(result)}
        for result in sums:
            more = self._multiplied | {result}
            if more != self._multiplied and self._sums_ns(more) <= self._sums_ns(self._multiplied):
                self._multiplied = more

    def _sums_ns(self, multiplied: set[int]) -> float:
        """Time of a tile's instructions, with those of sums over rows, where these are `multiplied`."""
        core, columns, additions = self._context.core, int(self._widths.max()), self._additions(multiplied)
        last = sum(
            instruction_ns(core, Engine.GPSIMD, Opcode.PARTITION_REDUCE, columns, self._widest(micro))
            for micro in additions
        )
        micros = [*self._selection.micros, *additions]
        products = {Engine.TENSOR: self._products_ns(multiplied)}
        busiest = busiest_ns(micros, self._engines(micros), self._costs, products)
        return busiest + last / (self._space.row_tiles * self._space.chunks)

    def _products_ns(self, multiplied: set[int]) -> float:
        """Time of the Tensor engine for a tile's sums over rows."""
        core = self._context.core
        bank, columns = core.psum_bank_bytes // 4, int(self._widths.max())
        blocks = -(-columns // core.tensor_columns)
        total = 0.0
        for key, result, _ in self._selection.partition_reductions:
            if result not in multiplied or self._is_scalar(result):
                continue
            dtype = self._dtype(key)
            if self._stands(result):
                loaded = instruction_ns(
                    core, Engine.TENSOR, Opcode.LDWEIGHTS, 0, dtype, columns=core.tensor_columns
                )
                total += blocks * (loaded + instruction_ns(core, Engine.TENSOR, Opcode.MATMUL, 1, dtype))
            else:
                total += sum(
                    instruction_ns(core, Engine.TENSOR, Opcode.MATMUL, min(bank, columns - start), dtype)
                    for start in range(0, columns, bank)
                )
        return total

    def _additions(self, multiplied: set[int]) -> list[Micro]:
        """What the Vector engine adds up of each tile for sums over rows that are not `multiplied`."""
        return [
            Micro(
                Opcode.TENSOR_TENSOR, (Engine.VECTOR,), [key], ("added", result), Shape.FULL,
                self._group.operations[-1], level=self._selection.level_of.get(key, 0),
            )
            for key, result, _ in self._selection.partition_reductions
            if result not in multiplied and result in self._context.locations
        ]  # fmt: skip

    def _is_scalar(self, result: int) -> bool:
        return self._context.type_of(result).element_count == 1

    def _partition_reduction(self, key: Key, result: int, kind: str) -> None:
        """Sum over partitions by a matmul with ones; other combinations on GpSimd at the end."""
        if result not in self._context.locations:
            return
        source = self._slots[key]
        level = self._selection.level_of.get(key, 0)
        active = self._active({level})
        is_scalar = self._is_scalar(result)
        version, last = self._reduction_versions(is_scalar)
        width: int | Ints = 1 if is_scalar else self._widths
        source, active = self._folded_rows(source, is_scalar, active)
        if result in self._multiplied and self._stands(result):
            self._store_turned(result, self._sums_of_blocks(source, version, active, last), last)
            return
        if result in self._multiplied:
            final = self._sum_by_matmul(source, version, width, active, last)
        else:
            exact = kind in EXACT_COMBINATIONS and source.dtype.byte_count <= DType.BF16.byte_count
            held = source.dtype if exact else DType.F32
            final = self._accumulate(source, version, width, active, last, held)
        self._store_late(result, final, width, last)

    def _reduction_versions(self, is_scalar: bool) -> tuple[Ints, Bools]:
        """(result that each iteration adds to, whether it is the last to add to it)."""
        space = self._space
        segments = self._rows // space.tiles_per_segment
        if is_scalar:
            version = np.zeros(space.iterations, np.int64)
        elif space.column_major:
            version = space.chunk_number() * (space.rows // space.segment) + segments
        else:
            version = segments
        last = np.diff(version, append=-1) != 0
        return version, last

    def _folded_rows(self, source: Slot, is_scalar: bool, active: Bools | None) -> tuple[Slot, Bools | None]:
        """Several rows of a partition (or all its columns, for a scalar) reduced to one row first."""
        if self._space.rows_per_partition == 1 and not is_scalar:
            return source, active
        size = 4 if is_scalar else 4 * self._space.chunk
        folded = self._loop.slot("folded", size, DType.F32)
        self._loop.step(
            Engine.VECTOR,
            Opcode.TENSOR_REDUCE,
            reads=(source,),
            writes=(folded,),
            partitions=self._partitions,
            elements=self._elements,
            active=active,
            flags=Flag.NONE if is_scalar else Flag.STRIDED,
        )
        return folded, active

    def _stands(self, result: int) -> bool:
        """Whether the tile is the stationary side of a sum: PSUM has no room for a row of all its columns."""
        return self._banks(self._is_scalar(result)) > ACCUMULATOR_BANKS

    def _banks(self, is_scalar: bool) -> int:
        space = self._space
        if is_scalar:
            return 1
        if space.chunks > 1 and not space.column_major:
            return ACCUMULATOR_BANKS + 1
        held = -(-space.chunk // (self._context.core.psum_bank_bytes // 4))
        return held * max(1, len(self._selection.partition_reductions))

    def _sum_by_matmul(
        self,
        source: Slot,
        version: Ints,
        width: int | Ints,
        active: Bools | None,
        last: Bools,
    ) -> Slot:
        loop, core = self._loop, self._context.core
        bank = core.psum_bank_bytes // 4
        ones = loop.slot("ones", 2, source.dtype, stationary=True)
        first = np.arange(self._space.iterations) == 0
        loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(ones,), elements=1, active=first)
        total = loop.slot("total", self._late_columns(width) * 4, DType.F32, version=version)
        widths = np.broadcast_to(np.asarray(width), (self._space.iterations,))
        for start in range(0, int(widths.max()), bank):
            psum = loop.slot("sums", core.psum_bank_bytes, DType.F32, memory=Memory.PSUM, version=version)
            columns = np.clip(widths - start, 0, bank)
            live = columns > 0 if active is None else active & (columns > 0)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(ones,), partitions=self._partitions, columns=1,
                      active=live)  # fmt: skip
            loop.step(Engine.TENSOR, Opcode.MATMUL, reads=(source, ones), writes=(psum,), elements=columns,
                      partitions=self._partitions, columns=1, active=live, accumulates=True,
                      flags=Flag.ACCUMULATE)  # fmt: skip
            loop.step(Engine.SCALAR, Opcode.ACTIVATE, activation=IDENTITY, reads=(psum,), writes=(total,),
                      partitions=1, elements=columns, active=last & (columns > 0))  # fmt: skip
        return total

    def _sums_of_blocks(self, source: Slot, version: Ints, active: Bools | None, last: Bools) -> Slot:
        """Sums of blocks of columns, each in a column of PSUM, turned to a row of SBUF each at the end."""
        loop, core = self._loop, self._context.core
        wide, every = core.tensor_columns, np.arange(self._space.iterations)
        ones = loop.slot("ones", source.dtype.byte_count, source.dtype, stationary=True)
        loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(ones,), elements=1, active=every == 0)
        sums, turned = (
            loop.slot(name, core.psum_bank_bytes, DType.F32, memory=Memory.PSUM, version=version)
            for name in ("sums", "turned sums")
        )
        for start in range(0, int(self._widths.max()), wide):
            columns = np.clip(self._widths - start, 0, wide)
            live = columns > 0 if active is None else active & (columns > 0)
            loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(source,), partitions=self._partitions,
                      columns=columns, active=live)  # fmt: skip
            loop.step(Engine.TENSOR, Opcode.MATMUL, reads=(ones, source), writes=(sums,), elements=1,
                      partitions=self._partitions, columns=columns, active=live, accumulates=True,
                      flags=Flag.ACCUMULATE)  # fmt: skip
        blocks = -(-self._late_columns(self._widths) // wide)
        held = loop.slot("columns of sums", 4 * blocks, DType.F32, version=version)
        total = loop.slot("total", 4 * wide, DType.F32, version=version)
        loop.step(Engine.SCALAR, Opcode.ACTIVATE, activation=IDENTITY, reads=(sums,), writes=(held,),
                  elements=blocks, active=last)  # fmt: skip
        loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(held,), columns=blocks, flags=Flag.TRANSPOSE,
                  active=last)  # fmt: skip
        loop.step(Engine.TENSOR, Opcode.TRANSPOSE, reads=(held,), writes=(turned,), columns=blocks,
                  elements=wide, flags=Flag.TRANSPOSE, active=last)  # fmt: skip
        loop.step(Engine.SCALAR, Opcode.ACTIVATE, activation=IDENTITY, reads=(turned,), writes=(total,),
                  partitions=blocks, elements=wide, active=last)  # fmt: skip
        return total

    def _store_turned(self, result: int, total: Slot, last: Bools) -> None:
        wide, item = self._context.core.tensor_columns, self._context.locations[result].dtype.byte_count
        elements = self._late_elements(self._widths)
        run = min(wide, int(elements.max())) * item
        self._save(result, total, elements * item, run, -(-elements // wide), last)

    def _accumulate(
        self, source: Slot, version: Ints, width: int | Ints, active: Bools | None,
        last: Bools, dtype: DType,
    ) -> Slot:  # fmt: skip
        """Elementwise over the row tiles on the Vector engine, across partitions once at the end."""
        loop = self._loop
        columns = self._late_columns(width)
        held = loop.slot("accumulator", columns * dtype.byte_count, dtype, version=version)
        first = np.diff(version, prepend=-1) != 0
        loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(held,), partitions=self._partitions, elements=width,
                  active=first)  # fmt: skip
        loop.step(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(source, held), writes=(held,), accumulates=True,
                  partitions=self._partitions, elements=width, active=active)  # fmt: skip
        total = loop.slot("total", columns * 4, DType.F32, version=version)
        elements = columns if self._space.chunks > 1 and not self._space.column_major else width
        loop.step(Engine.GPSIMD, Opcode.PARTITION_REDUCE, reads=(held,), writes=(total,), elements=elements,
                  partitions=int(self._partitions.max()), active=last)  # fmt: skip
        return total

    def _late_columns(self, width: int | Ints) -> int:
        if isinstance(width, int):
            return width
        return self._space.chunk if self._space.column_major else self._space.columns

    def _store_late(self, result: int, final: Slot, width: int | Ints, last: Bools) -> None:
        elements, item = self._late_elements(width), self._context.locations[result].dtype.byte_count
        self._save(result, final, elements * item, int(elements.max()) * item, 1, last)

    def _late_elements(self, width: int | Ints) -> Ints:
        """(iterations,) elements of a result that are complete with each."""
        whole = self._space.chunks > 1 and not self._space.column_major and not isinstance(width, int)
        stored = np.asarray(self._space.columns if whole else width)
        return np.broadcast_to(stored, (self._space.iterations,))

    def _engines(self, micros: Sequence[Micro]) -> Sequence[Sequence[Engine]]:
        raise NotImplementedError
