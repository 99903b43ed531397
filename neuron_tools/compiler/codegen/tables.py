"""Activation tables of the Scalar engine: loaded when a loop needs functions that are not there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuron_tools.compiler.codegen.context import Context
from neuron_tools.compiler.codegen.tile_loop import TileLoop
from neuron_tools.records.program import Engine, Opcode

IDENTITY = "identity"
SQUARE = "square"
_EVERYWHERE = (IDENTITY, SQUARE)
"""Functions that every table has."""


def load_tables(context: Context, loop: TileLoop, functions: Mapping[str, None]) -> None:
    """Load the activation tables that a loop needs and that are not loaded yet, before its first use."""
    missing = [name for name in functions if name not in _EVERYWHERE and name not in context.loaded_tables]
    if not missing:
        return
    context.loaded_tables = tuple(name for name in functions if name not in _EVERYWHERE)
    first = np.arange(loop.iterations) == 0
    for name in missing:
        loop.step(Engine.SCALAR, Opcode.ACT_TABLE_LOAD, activation=name, active=first)
