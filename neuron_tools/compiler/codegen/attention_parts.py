"""What the parts of an attention block's code have in common: the block declares the steps they read."""

from __future__ import annotations

from neuron_tools.compiler.codegen.attention_tiles import Iterations, Shapes
from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.tile_loop import TileLoop


class AttentionParts:
    """The block's shapes and loop, and the sizes of its tiles."""

    _context: Context
    _shapes: Shapes
    _at: Iterations
    _loop: TileLoop
    _tile: int
    _bank: int
    _chunk: int
