"""A copy of a tile inside SBUF, divided between the Vector and the Scalar engine."""

from __future__ import annotations

from neuron_tools.arrays import Ints
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.engines import instruction_ns
from neuron_tools.compiler.codegen.slot import Slot
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.records.program import Engine, Opcode


def copy_halved(
    context: Context, loop: TileLoop, source: Slot, target: Slot, partitions: Ints, elements: int,
    *, joins: bool = False,
) -> None:  # fmt: skip
    """Declare the copies, of so many elements each that both engines end together.

    Args:
        context: Where code goes.
        loop: What the copies belong to.
        source, target: What is copied, and where.
        partitions: (iterations,) of the tile.
        elements: Of a partition.
        joins: Whether the target holds something already that stays.
    """
    vector, scalar = (
        instruction_ns(context.core, engine, Opcode.TENSOR_COPY, elements, source.dtype)
        for engine in (Engine.VECTOR, Engine.SCALAR)
    )
    first = max(1, round(elements * scalar / (vector + scalar)))
    for engine, count in ((Engine.VECTOR, first), (Engine.SCALAR, elements - first)):
        if count:
            loop.step(
                engine, Opcode.TENSOR_COPY, reads=(source,), writes=(target,), partitions=partitions,
                elements=count, accumulates=joins or engine is Engine.SCALAR,
            )  # fmt: skip
