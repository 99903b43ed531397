"""Sorts and the largest of rows."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.compiler.compile import compile_module
from neuron_tools.records.program import Memory, Program
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, tile_races
from tests.unit.compiler.operators import lowered


def largest(rows: int, length: int, count: int) -> Program:
    """`torch.topk` in fp32."""
    values = torch.empty((rows, length), device="meta")
    return compile_module(lowered(torch.ops.aten.topk.default, values, count, -1, True, True), CORE)


def duration_ps(program: Program) -> int:
    return int(simulate(program, CORE).duration_ps)


@pytest.mark.parametrize(("rows", "length", "count"), [(16, 32000, 8), (300, 64, 2), (3, 16032, 50)])
def test_only_the_largest_of_rows_are_stored(rows, length, count):
    """Values of 4 bytes and places of 8, stored by the search and copied as results."""
    program = largest(rows, length, count)
    written = program.dmas["bytes"][program.dmas["destination_memory"] == Memory.HBM].sum()
    assert written <= 2 * rows * count * (4 + 8)
    assert tile_races(program) == 0


def test_more_of_a_long_row_than_fits_beside_that_of_other_pieces_is_sorted_on_chip_too():
    program = largest(8, 128256, 600)
    assert not program.warnings
    assert tile_races(program) == 0


def test_rows_on_partitions_of_their_own_take_no_longer_than_one():
    assert duration_ps(largest(64, 32000, 8)) < 1.2 * duration_ps(largest(1, 32000, 8))
