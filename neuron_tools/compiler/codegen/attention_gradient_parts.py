"""What the parts of the backward of attention have in common: operands, the loop, its stages and steps."""

from __future__ import annotations

import math
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiler.codegen.attention_gradient_tiles import GradientTiles
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import instruction_ns
from neuron_tools.compiler.codegen.psum_readers import PsumReaders
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.opcodes import ATTENTION_OPERANDS
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

_READERS = (Engine.SCALAR, Engine.VECTOR)


class Stage(IntEnum):
    """Stages of the loop, in each of which an engine meets results of the one before.

    Operands are turned, taken out of PSUM and multiplied; scores become weights, of which some are lost, and
    with them gradients of scores; both are multiplied again, and what comes of it is taken out of PSUM; these
    gradients, turned, are multiplied with keys, and that is taken out. With fewer stages an engine would wait
    for what another has only begun in the same one, and in the end all for one another.
    """

    TURNED = 1
    READY = 2
    SCORED = 3
    WEIGHTED = 4
    KEPT = 5
    CHANGED = 6
    SUMMED = 7
    TAKEN = 8
    QUERIED = 9
    DONE = 10


class GradientParts:
    """The sizes, the loop and the banks, and the steps that several parts declare."""

    _turning: Slot
    _products: Slot
    _key_sums: Slot
    _turning_changes: Slot
    _query_sums: Slot
    _takes_weights: Engine

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
        # Four products: scores that are computed again to save memory are not the model's.
        flops = 4 * heads * sizes[0] * sizes[1] * (self._depth + self._width)
        self._unseen = max(0, sizes[1] - sizes[0]) if is_causal else 0
        sizes = (sizes[0], sizes[1] - self._unseen)
        self._at = GradientTiles.of(heads, self._shared, sizes, self._size, is_causal=is_causal)
        self._query_tiles, self._key_tiles = (-(-size // self._size) for size in sizes)
        self._dtype = chip_dtype(query.dtype)
        self._hlo = context.hlo(group, model_flops=flops)
        self._loop = TileLoop(context, len(self._at.keys), self._hlo)
        self._readers = PsumReaders(context.core)
        for value in operation.results:
            context.define(value)

    def _ns(
        self, engine: Engine, opcode: Opcode, elements: int, dtype: DType = DType.F32,
        source: Memory = Memory.PSUM,
    ) -> float:  # fmt: skip
        return instruction_ns(self._context.core, engine, opcode, elements, dtype, source)

    def _slot(self, name: str, columns: int, dtype: DType, content: Ints) -> Slot:
        """A tile; those that later iterations meet again stay until the last has."""
        return self._loop.slot(name, columns * dtype.byte_count, dtype, version=content, extra_buffers=1)

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
