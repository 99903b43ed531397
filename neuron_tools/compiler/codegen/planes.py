"""Code generation for pads and slices of planes, as of images: whole planes pass SBUF.

Rows of an image are short, and a descriptor for each would move little at a time. Whole planes are loaded and
stored in long pieces; engines put their rows in place between, the padding around them.
"""

from __future__ import annotations

import math

import numpy as np

from neuron_tools.compiler.allocate import latest
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.halved_copy import copy_halved
from neuron_tools.compiler.codegen.location import Location
from neuron_tools.compiler.codegen.space import in_proportion
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.compiler.codegen.types import chip_dtype
from neuron_tools.compiler.hlo import TensorType
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import Engine, Opcode
from neuron_tools.simulator.dma_costs import stretch_time_ns

LEAST_PLANES = 32
"""Fewer leave most partitions without work."""
WORTH_IT = 0.8
"""Part of the time of moving pieces that moving whole planes may take: they go into SBUF and out again."""
TILE_BYTES = 16 << 10
"""Of a partition's part of a tile: larger planes are cut into bands, small ones share a partition."""


@frozen
class Planes:
    """Planes of which one side has a part of the other's.

    Attributes:
        count: Planes.
        small, large: Elements of a plane on each side.
    """

    count: int
    small: int
    large: int


def find_planes(
    core: NeuronCore, small: TensorType, large: TensorType, run: int, *, fills: bool
) -> Planes | None:
    """The planes of a pad or a slice that are moved whole; None where its own pieces are moved as soon.

    Args:
        core: What runs it.
        small, large: Of both sides, the one a part of the other.
        run: Elements that lie together on both.
        fills: Whether the rest of the larger side is written as well.
    """
    extents = list(zip(small.shape, large.shape))
    differs = next((axis for axis, (part, whole) in enumerate(extents) if part != whole), 0)
    planes = Planes(*(math.prod(each) for each in (
        small.shape[:differs], small.shape[differs:], large.shape[differs:],
    )))  # fmt: skip
    if not 0 < planes.small <= planes.large or planes.count < LEAST_PLANES:
        return None
    item = chip_dtype(small.dtype).byte_count
    each_ns = item / core.dma_engine_bandwidth * 1e9
    in_pieces = planes.small / run * stretch_time_ns(core, run * item, strided=True)
    in_pieces += planes.large * each_ns if fills else 0.0
    return planes if (planes.small + planes.large) * each_ns < in_pieces * WORTH_IT else None


def move_planes(
    context: Context, source: Location, target: Location, planes: Planes, hlo: int, *, fills: bool
) -> None:
    """Emit the loop; the target's tokens are set to what completes it.

    Args:
        context: Where code goes.
        source, target: Of planes in HBM; a pad's source and a slice's target have the smaller ones.
        planes: What `find_planes` found.
        hlo: The row that it belongs to.
        fills: Whether it is a pad.
    """
    item, partitions = source.dtype.byte_count, context.core.sbuf_partitions
    together = max(1, min(-(-planes.count // partitions), TILE_BYTES // (planes.large * item)))
    bands = max(1, -(-planes.large * item // TILE_BYTES))
    parts = -(-planes.count // together)
    loop = TileLoop(context, -(-parts // partitions) * bands, hlo)
    used = np.minimum(partitions, parts - np.arange(loop.iterations) // bands * partitions)
    read, written = (planes.small, planes.large) if fills else (planes.large, planes.small)
    share = used / used.sum()
    pieces = [-(-together * elements // bands) for elements in (read, written)]
    loaded = loop.slot("planes", pieces[0] * item, source.dtype, extra_buffers=1)
    placed = loop.slot("placed", pieces[1] * item, source.dtype)
    elements = [in_proportion(planes.count * each, share) for each in (read, written)]
    load = source.load(context.load_queue(source), elements[0], pieces[0], used)
    loop.load(loaded, load, after=source.tokens)
    if fills:
        loop.step(Engine.GPSIMD, Opcode.MEMSET, writes=(placed,), partitions=used, elements=pieces[1])
    copy_halved(context, loop, loaded, placed, used, min(pieces), joins=fills)
    stored = loop.store(placed, target.store(context.store_queue(), elements[1], pieces[1], used))
    loop.emit()
    target.tokens = latest(target.tokens, loop.completion(stored))
