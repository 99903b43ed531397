"""Reductions over leading axes: slices of the operand are combined elementwise as they come in.

What remains lies over all partitions, so that few long slices (a batch of activations, a stack of masks)
need no instruction across partitions.
"""

from __future__ import annotations

import math

import numpy as np

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.estimate import generate_estimate
from neuron_tools.compiler.codegen.micro import reduction_kind
from neuron_tools.compiler.codegen.slot import Transfer
from neuron_tools.compiler.codegen.space import flat_space
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import DType, Engine, Memory, Opcode


def generate_reduce(context: Context, group: Group) -> None:
    """Emit a reduction that no loop over rows does: by folding, or as an estimate."""
    operation = group.operations[0]
    source, result = operation.operands[0], operation.results[0]
    shape = context.type_of(source).shape
    reduced = set(operation.attributes.get("dimensions", ()))
    inner = math.prod(extent for axis, extent in enumerate(shape) if axis > max(reduced, default=-1))
    view = context.plan.views.of(source)
    is_simple = len(operation.results) == 1 and reduction_kind(operation) != "argument"
    if not is_simple or inner == 1 or view.root < 0 or not view.is_plain:
        generate_estimate(context, group, warn=False)
        return
    _fold(context, group, math.prod(shape[axis] for axis in reduced), inner, result, view.root)


def _fold(context: Context, group: Group, slices: int, inner: int, result: int, source: int) -> None:
    """One slice per iteration; a tile of the result is held until its last slice has been added."""
    place, target = context.location(source), context.define(result)
    kept = target.type.element_count
    space = flat_space(kept, place.dtype.byte_count, context.core.sbuf_partitions)
    loop = TileLoop(context, space.iterations * slices, context.hlo(group))
    tile = np.repeat(np.arange(space.iterations), slices)
    position = np.tile(np.arange(slices), space.iterations)
    size, partitions = space.tile_elements()[tile], space.partition_counts()[tile]
    run = min(space.run_elements(), inner)
    dtype = chip_dtype(place.type.dtype)
    loaded = loop.slot("slice", space.chunk * dtype.byte_count, dtype, extra_buffers=1)
    load = Transfer(
        context.load_queue(), Memory.HBM, Memory.SBUF, size * place.dtype.byte_count,
        run * place.dtype.byte_count, partitions, place.purpose, place.dtype, place.tensor,
    )  # fmt: skip
    loop.load(loaded, load, after=place.tokens)
    held = loop.slot("accumulator", space.chunk * 4, DType.F32, version=tile)
    elements = space.elements_per_partition()[tile]
    loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(loaded,), writes=(held,), partitions=partitions,
              elements=elements, active=position == 0)  # fmt: skip
    loop.step(Engine.VECTOR, Opcode.TENSOR_TENSOR, reads=(loaded, held), writes=(held,), accumulates=True,
              partitions=partitions, elements=elements, active=position > 0)  # fmt: skip
    store = Transfer(
        context.store_queue(), Memory.SBUF, Memory.HBM, size * target.dtype.byte_count,
        space.run_elements() * target.dtype.byte_count, partitions, target.store_purpose, target.dtype,
        target.tensor,
    )  # fmt: skip
    stored = loop.store(held, store, active=position == slices - 1)
    loop.emit()
    context.complete(result, loop.completion(stored))
