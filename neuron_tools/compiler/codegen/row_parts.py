"""Rows that several partitions share: what each has reduced is joined, and all of them have the result.

A product with a matrix that is one where two partitions belong to one row adds up across partitions and
spreads the sums again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.compiler.codegen.loop_state import LoopState
from neuron_tools.compiler.codegen.micro import Key, Micro
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.records.program import DType, Engine, Memory, Opcode

_MOMENTS = 2


class RowParts(LoopState):
    """Declares the steps that join the parts of rows."""

    _belonging: Slot | None = None

    def _join_sums(self, key: Key, level: int) -> None:
        """Add up a reduction's parts."""
        if self._space.row_parts > 1:
            self._slots[key] = self._joined(self._slots[key], level, self._space.rows_per_partition)

    def _join_moments(self, micro: Micro) -> None:
        """Mean and variance of whole rows, from the means of the parts' elements and of their squares."""
        if self._space.row_parts == 1:
            return
        moments = self._slots[micro.writes]
        squares = self._row_slot(DType.F32, _MOMENTS)
        self._part_step(Opcode.SCALAR_TENSOR_TENSOR, (moments, moments), squares, micro.level)
        joined = self._joined(squares, micro.level, _MOMENTS * self._space.rows_per_partition)
        result = self._slots[micro.writes] = self._row_slot(DType.F32, _MOMENTS)
        self._part_step(Opcode.SCALAR_TENSOR_TENSOR, (joined, joined), result, micro.level)

    def _joined(self, source: Slot, level: int, count: int) -> Slot:
        loop, space = self._loop, self._space
        active = self._end_of_level(level)
        version = None if space.chunks == 1 else self._rows
        sums = loop.slot(
            "sums", self._context.core.psum_bank_bytes, DType.F32, memory=Memory.PSUM, version=version
        )
        columns = int(self._partitions.max())
        size: dict[str, Any] = {
            "partitions": self._partitions, "columns": columns, "active": active,
            "opens_stage": space.chunks == 1,
        }  # fmt: skip
        loop.step(Engine.TENSOR, Opcode.LDWEIGHTS, reads=(self._matrix(),), **size)
        loop.step(Engine.TENSOR, Opcode.MATMUL, reads=(source,), writes=(sums,), elements=count, **size)
        result = self._row_slot(DType.F32, count // space.rows_per_partition)
        self._part_step(Opcode.TENSOR_COPY, (sums,), result, level, elements=count)
        return result

    def _matrix(self) -> Slot:
        """Made by counting, and comparing what is counted with the partition's number."""
        if self._belonging is None:
            columns, first = int(self._partitions.max()), np.arange(self._space.iterations) == 0
            slot = self._belonging = self._loop.slot("belonging", 4 * columns, DType.F32, stationary=True)
            made: dict[str, Any] = {"writes": (slot,), "elements": columns, "active": first}
            self._loop.step(Engine.GPSIMD, Opcode.IOTA, **made)
            self._loop.step(Engine.GPSIMD, Opcode.TENSOR_SCALAR, reads=(slot,), **made)
        return self._belonging

    def _part_step(
        self, opcode: Opcode, reads: tuple[Slot, ...], made: Slot, level: int, elements: int = 0
    ) -> None:
        active = self._end_of_level(level)
        self._loop.step(
            Engine.VECTOR, opcode, reads=reads, writes=(made,), partitions=self._partitions,
            elements=elements or self._space.rows_per_partition, active=active,
            opens_stage=self._space.chunks == 1,
        )  # fmt: skip
