"""Grids of index expressions: shape, steps and reach, whatever the offsets."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.compat.neuronxcc.nki import language as nl
from neuron_tools.nki.errors import OutOfBoundsError
from neuron_tools.nki.index_grid import grid_of
from tests.unit.nki.kernels import floats, run_raw

ROW = ((4, 1), (2, 0))
COLUMN = ((1, 8), (0, -1))


def test_a_grid_has_the_steps_of_its_expressions():
    grid = grid_of((64, 16, 1), (None, ROW, COLUMN))
    assert (grid.extents, grid.strides) == ((4, 8), (32, -1))
    assert grid.reaches == ((0, 0), (0, 6), (-7, 0))


@pytest.mark.parametrize("tensor", [floats(3, 32, 48), floats(3, 32, 40)], ids=["wide", "narrow"])
def test_expressions_of_other_offsets_pick_other_elements(tensor):
    def body(x):
        row, column = nl.arange(8)[:, None], nl.arange(16)[None, :]
        result = nl.ndarray((3, 2, 8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        for block in nl.affine_range(3):
            for half in nl.affine_range(2):
                picked = nl.load(x[block, half * 16 + row * 2, column * 2 + half])
                nl.store(result[block, half, row, column], picked)
        return result

    expected = [
        [x[16 * half : 16 * half + 16 : 2, half : half + 32 : 2] for half in range(2)] for x in tensor
    ]
    np.testing.assert_array_equal(run_raw(body, tensor, older=True).outputs, expected)


def test_an_expression_that_reaches_outside_later_is_refused():
    def body(x):
        row, column = nl.arange(8)[:, None], nl.arange(16)[None, :]
        for block in nl.sequential_range(3):
            tile = nl.load(x[block * 8 + row, column])
        return tile

    with pytest.raises(OutOfBoundsError):
        run_raw(body, floats(16, 16), older=True)
