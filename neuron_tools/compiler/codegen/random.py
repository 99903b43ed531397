"""Code generation for random numbers: made on the Vector engine, tile by tile."""

from __future__ import annotations

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.space import flat_space
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.passes.groups import Group
from neuron_tools.records.program import Engine, Opcode


def generate_random(context: Context, group: Group) -> None:
    """Emit rng or rng_bit_generator; the new generator state, if it is a result, is written too."""
    operation = group.operations[0]
    hlo = context.hlo(group)
    for value in operation.results:
        context.define(value)
        count = context.type_of(value).element_count
        if count == 0:
            continue
        location = context.locations[value]
        item = location.dtype.byte_count
        dtype = chip_dtype(context.type_of(value).dtype)
        space = flat_space(count, item, context.core.sbuf_partitions)
        loop = TileLoop(context, space.iterations, hlo)
        tile = loop.slot("random", space.chunk * dtype.byte_count, dtype)
        loop.step(Engine.VECTOR, Opcode.RANDOM, writes=(tile,), partitions=space.partition_counts(),
                  elements=space.elements_per_partition())  # fmt: skip
        transfer = location.store(
            context.store_queue(), space.tile_elements(), space.run_elements(), space.partition_counts()
        )
        stored = loop.store(tile, transfer)
        loop.emit()
        context.complete(value, loop.completion(stored))
