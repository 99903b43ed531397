"""Bandwidth-bound stand-in for operations without a generator: never refused, always named."""

from __future__ import annotations

from typing import Any

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.space import flat_space
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.graph import operands_of
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import Engine, Flag, Opcode


def generate_estimate(context: Context, group: Group, *, warn: bool = True, model_flops: int = 0) -> None:
    """Read what the group reads once and write its results once, with one Vector pass over each."""
    operation = group.operations[0]
    if warn:
        name = str(operation.attributes.get("call_target_name", "")) or operation.opcode
        context.builder.warning(
            f"{name} has no native lowering: its time is that of moving its bytes and one pass over them."
        )
    hlo = context.hlo(group, model_flops=model_flops)
    read = dict.fromkeys(value for inner in group.operations for value in operands_of(inner))
    for value in read:
        if value not in group.shapes and context.plan.views.of(value).root not in group.shapes:
            _stream(context, value, hlo, loads=True)
    for value in group.outputs or operation.results:
        if value not in context.locations:
            context.define(value)
        _stream(context, value, hlo, loads=False)


def _stream(context: Context, value: int, hlo: int, *, loads: bool) -> None:
    """Move one tensor through SBUF, with one instruction per tile."""
    type_ = context.type_of(value)
    if type_.element_count == 0 or (loads and context.plan.views.of(value).root < 0):
        return
    view = context.plan.views.of(value)
    location = context.location(view.root if loads else value)
    item = location.dtype.byte_count
    space = flat_space(type_.element_count, item, context.core.sbuf_partitions)
    loop = TileLoop(context, space.iterations, hlo)
    dtype = chip_dtype(type_.dtype)
    tile = loop.slot("estimate", space.chunk * dtype.byte_count, dtype, extra_buffers=1)
    tiles = space.tile_elements(), space.run_elements(), space.partition_counts()
    compute: dict[str, Any] = {
        "partitions": tiles[2], "elements": space.elements_per_partition(), "flags": Flag.ESTIMATE,
    }  # fmt: skip
    if loads:
        loop.load(tile, location.load(context.load_queue(location), *tiles), after=location.tokens)
        loop.step(Engine.VECTOR, Opcode.TENSOR_COPY, reads=(tile,), **compute)
        loop.emit()
        return
    loop.step(Engine.VECTOR, Opcode.MEMSET, writes=(tile,), **compute)
    stored = loop.store(tile, location.store(context.store_queue(engine=Engine.SYNC), *tiles))
    loop.emit()
    context.complete(value, loop.completion(stored))
