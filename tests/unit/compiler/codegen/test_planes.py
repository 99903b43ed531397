"""Pads and slices of images: planes are moved whole, and rows put in place on chip."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.compiler.codegen.planes import Planes, find_planes
from neuron_tools.compiler.hlo import TensorType
from neuron_tools.records.program import Memory
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

aten = torch.ops.aten
CORE = hardware.get("trn1")
ALLOWED_S = 8e-6
"""For the first load and the last store of a small operation."""


def padded(shape, edges, dtype=torch.float32):
    image = torch.empty(shape, dtype=dtype, device="meta")
    return compile_module(lowered(aten.constant_pad_nd.default, image, edges, 0.5), CORE)


def moved_bytes(program):
    at_hbm = (program.dmas["source_memory"] == Memory.HBM) | (
        program.dmas["destination_memory"] == Memory.HBM
    )
    return int(program.dmas["bytes"][at_hbm].sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("side", [7, 14, 56, 112])
@pytest.mark.parametrize(("edges", "added"), [((1, 1, 1, 1), 2), ((0, 1, 0, 1), 1)])
def test_padding_moves_each_plane_once(side, edges, added, dtype):
    program = padded((2, 144, side, side), edges, dtype)
    size = dtype.itemsize * 288 * (side**2 + (side + added) ** 2)
    assert moved_bytes(program) == size
    assert tile_races(program) == 0
    assert simulate(program, CORE).duration_ps * 1e-12 <= 1.5 * size / DRAWN_BY_A_CORE + ALLOWED_S


@pytest.mark.parametrize("side", [14, 56, 112])
def test_cutting_edges_off_moves_each_plane_once(side):
    program = padded((2, 144, side + 2, side + 2), (-1, -1, -1, -1))
    size = 4 * 288 * (side**2 + (side + 2) ** 2)
    assert moved_bytes(program) == size
    assert simulate(program, CORE).duration_ps * 1e-12 <= 1.5 * size / DRAWN_BY_A_CORE + ALLOWED_S


def found(small, large, run, *, fills):
    return find_planes(CORE, TensorType(small, "f32"), TensorType(large, "f32"), run, fills=fills)


def test_long_rows_and_few_planes_are_moved_as_they_lie():
    assert found((64, 6, 4096), (64, 8, 4096), 6 * 4096, fills=True) is None
    assert found((1, 3, 14, 14), (1, 3, 16, 16), 14, fills=True) is None


def test_a_small_part_of_planes_is_cut_out_alone():
    assert found((288, 7, 112), (288, 112, 112), 7 * 112, fills=False) is None
    assert found((288, 56, 56), (288, 58, 58), 56, fills=False) == Planes(288, 3136, 3364)
