"""Code generation for pooling: maxima, sums and the places of maxima of windows.

A window is reduced axis by axis where that reads fewer elements, and GpSimd combines along the last of them
where the Vector engine has more to do. Elements of 16 bits whose places are asked for, too, are put with them
into one word, the element above: one reduction then finds both. (The last, if equal and negative.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import instruction_ns, needs_port
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.space import (
    MINIMUM_RUN_BYTES,
    TARGET_ITERATIONS,
    flat_space,
    in_proportion,
)
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import DType, Engine, Flag, Opcode

RESULT_BYTES = 2048
"""Of a tile, on one partition."""
WORD_TILES = 4
"""First tiles that write places beside their elements: no more buffers are in turn, and the places stay."""


@frozen
class _Stage:
    """Instructions of one engine that reduce windows along an axis, or along all.

    Attributes:
        reads: Elements that each instruction takes for one result of the pooling.
        results: Elements that it makes for one.
        count: Instructions, each on what the one before has made.
    """

    engine: Engine
    opcode: Opcode
    reads: int
    results: int
    count: int = 1

    def nanoseconds(self, core: NeuronCore, results: int, dtype: DType) -> float:
        """Time for so many results of the pooling."""
        return self.count * instruction_ns(core, self.engine, self.opcode, self.reads * results, dtype)


def generate_pooling(context: Context, group: Group) -> None:
    """Emit a reduce_window over windows of several axes."""
    loop = _Pooling(context, group)
    loop.build()


class _Pooling:
    """One loop over tiles of results: load, reduce, store."""

    def __init__(self, context: Context, group: Group) -> None:
        operation = group.operations[0]
        self._context = context
        self._results = operation.results
        self._images = [
            value
            for value in operation.operands
            if context.type_of(value).element_count > 1 and context.plan.views.of(value).root >= 0
        ]
        for value in self._results:
            context.define(value)
        self._window = tuple(operation.attributes.get("window_dimensions", ()))
        self._strides = tuple(operation.attributes.get("window_strides", ())) or (1,) * len(self._window)
        self._count = context.type_of(self._results[0]).element_count
        item = context.locations[self._results[0]].dtype.byte_count
        space = flat_space(self._count, item, context.core.sbuf_partitions)
        even = max(MINIMUM_RUN_BYTES // item, -(-space.columns // TARGET_ITERATIONS))
        self._space = space.with_chunk(min(space.chunk, RESULT_BYTES // item, even))
        self._loop = TileLoop(context, self._space.iterations, context.hlo(group))
        self._partitions = self._space.partition_counts()

    def build(self) -> None:
        """Declare the steps and append the loop to the program."""
        images = [self._loaded(value) for value in self._images]
        if len(images) == 1 and len(self._results) == 2 and images[0].dtype.byte_count <= 2:
            self._store_both(self._reduced(self._words(images[0])))
        else:
            for value in self._results:
                held = chip_dtype(self._context.type_of(value).dtype)
                self._store(value, self._reduced(images[0], held) if images else self._filled(held))
        self._loop.emit()
        for value in self._results:
            self._context.complete(value, self._loop.stored())

    def _loaded(self, value: int) -> Slot:
        location = self._context.location(value)
        dtype = chip_dtype(self._context.type_of(value).dtype)
        share = self._space.tile_elements() / self._count
        elements = in_proportion(self._context.type_of(value).element_count, share)
        run = int(-(-elements.max() // max(1, int(self._partitions.max()))))
        slot = self._loop.slot("operand", run * dtype.byte_count, dtype, extra_buffers=1)
        slot.tensor = location.tensor
        transfer = location.load(self._context.load_queue(), elements, run, self._partitions)
        self._loop.load(slot, transfer, after=location.tokens)
        return slot

    def _words(self, image: Slot) -> Slot:
        """Each element above its place; the places are written once for each buffer."""
        elements = image.bytes_per_partition // image.dtype.byte_count
        words = self._loop.slot("words", elements * DType.F32.byte_count, DType.F32)
        first = np.arange(self._loop.iterations) < WORD_TILES
        self._step(Engine.GPSIMD, Opcode.IOTA, (), words, elements, active=first)
        self._step(Engine.SCALAR, Opcode.TENSOR_COPY, (image,), words, elements, joins=True)
        return words

    def _reduced(self, source: Slot, dtype: DType = DType.F32) -> Slot:
        """One element of each window of a slot."""
        results = int(self._space.elements_per_partition().max())
        widest = max(source.dtype, dtype, key=lambda each: each.byte_count)
        for stage in _stages(self._context.core, self._window, self._strides, results, widest):
            made = self._result(dtype, stage.results)
            for number in range(stage.count):
                elements = self._space.elements_per_partition() * stage.reads
                self._step(stage.engine, stage.opcode, (source,), made, elements, strided=True,
                           joins=number > 0)  # fmt: skip
            source = made
        return source

    def _filled(self, dtype: DType) -> Slot:
        """What windows over one number everywhere give."""
        made = self._result(dtype, 1)
        self._step(Engine.GPSIMD, Opcode.MEMSET, (), made, self._space.elements_per_partition())
        return made

    def _result(self, dtype: DType, each: int) -> Slot:
        size = int(self._space.elements_per_partition().max()) * each * dtype.byte_count
        return self._loop.slot("result", size, dtype)

    def _store_both(self, words: Slot) -> None:
        """What words hold, apart."""
        for value in self._results:
            made = self._result(chip_dtype(self._context.type_of(value).dtype), 1)
            self._step(
                Engine.SCALAR, Opcode.TENSOR_COPY, (words,), made, self._space.elements_per_partition()
            )
            self._store(value, made)

    def _store(self, value: int, made: Slot) -> None:
        space = self._space
        transfer = self._context.locations[value].store(
            self._context.store_queue(), space.tile_elements(), space.run_elements(), self._partitions
        )
        self._loop.store(made, transfer)

    def _step(
        self, engine: Engine, opcode: Opcode, reads: tuple[Slot, ...], made: Slot, elements: int | Ints,
        *, strided: bool = False, joins: bool = False, active: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self._loop.step(
            engine, opcode, reads=reads, writes=(made,), partitions=self._partitions, elements=elements,
            flags=Flag.STRIDED if strided else Flag.NONE, accumulates=joins, active=active,
        )  # fmt: skip


def _stages(
    core: NeuronCore, window: Sequence[int], strides: Sequence[int], results: int, dtype: DType
) -> tuple[_Stage, ...]:
    """The quickest way to reduce windows: at once, axis by axis, or the last axis beside the others.

    Args:
        core: What runs it.
        window, strides: Along each axis.
        results: Of a tile, on one partition.
        dtype: What is compared or added.
    """
    whole = (_Stage(Engine.VECTOR, Opcode.TENSOR_REDUCE, math.prod(window), 1),)
    axes = [axis for axis, extent in enumerate(window) if extent > 1]
    if len(axes) < 2:
        return whole
    by_axis = []
    for axis in reversed(axes):
        left = math.prod(strides[:axis])
        by_axis.append(_Stage(Engine.VECTOR, Opcode.TENSOR_REDUCE, left * window[axis], left))
    last = window[axes[0]]
    beside = (*by_axis[:-1], _Stage(Engine.GPSIMD, Opcode.TENSOR_TENSOR, 1, 1, last - 1))

    def busy(way: Sequence[_Stage]) -> float:
        times = dict.fromkeys((Engine.VECTOR, Engine.GPSIMD), 0.0)
        for stage in way:
            times[stage.engine] += stage.nanoseconds(core, results, dtype)
        shares = any(needs_port(core, Engine.VECTOR, stage.opcode, dtype) for stage in way)
        return sum(times.values()) if shares else max(times.values())

    return min((whole, tuple(by_axis), beside), key=busy)
