"""The backward of max pooling: what it moves, how long it takes, and windows of every kind."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_logical, compile_module
from neuron_tools.compiler.codegen.pool_gradient import Pooling
from neuron_tools.records.program import DType, Engine, Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

TARGET = torch.ops.aten.max_pool2d_with_indices_backward.default


def module(shape, kernel, stride, padding, dilation=1, dtype=torch.float32):
    data = torch.empty(shape, dtype=dtype, device="meta")
    options = [[size] * 2 for size in (kernel, stride, padding, dilation)]
    pooled, indices = torch.ops.aten.max_pool2d_with_indices(data, *options)
    arguments = (pooled, data, *options, False, indices)
    return lowered(TARGET, *arguments)


def hbm_bytes(program):
    dmas = program.dmas
    read, written = (dmas[f"{side}_memory"] == Memory.HBM for side in ("source", "destination"))
    return int(dmas["bytes"][read].sum()), int(dmas["bytes"][written].sum())


def test_it_reads_gradients_and_places_once_and_writes_the_image():
    windows, elements = 16 * 64 * 16 * 16, 16 * 64 * 32 * 32
    program = compile_module(module((16, 64, 32, 32), 3, 2, 1), hardware.get("trn1"))
    assert hbm_bytes(program) == (windows * (4 + 8), elements * 4)
    assert not program.warnings


@pytest.mark.parametrize("shape", [(16, 64, 32, 32), (16, 64, 112, 112)])
def test_it_is_within_one_and_a_half_times_of_its_memory_bound(shape):
    graph, core = module(shape, 3, 2, 1), hardware.get("trn1")
    program = compile_module(graph, core)
    moved = sum(hbm_bytes(program)) + 4 * torch.Size(shape).numel()  # the image is an argument, too
    assert simulate(program, core).duration_ps * 1e-12 <= 1.5 * moved / core.hbm_bandwidth


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [((32, 64, 32, 32), 3, 2, 1), ((16, 64, 112, 112), 3, 2, 1), ((32, 64, 64, 64), 2, 2, 0)],
)
def test_in_bf16_it_takes_at_most_one_and_a_half_times_as_long_as_what_it_moves(
    shape, kernel, stride, padding
):
    graph, core = module(shape, kernel, stride, padding, dtype=torch.bfloat16), hardware.get("trn1")
    program = compile_module(graph, core)
    assert simulate(program, core).duration_ps * 1e-12 <= 1.5 * sum(hbm_bytes(program)) / DRAWN_BY_A_CORE


def test_places_of_a_plane_that_two_bytes_cannot_count_are_compared_as_they_are():
    def narrowed(side):
        program = compile_module(module((64, 2, side, side), 2, 2, 0), hardware.get("trn1"))
        return (program.instructions["output_dtype"] == DType.U16).any()

    assert narrowed(256)
    assert not narrowed(258)


def test_two_cores_share_images_or_channels():
    graph, core = module((16, 64, 32, 32), 3, 2, 1), hardware.get("trn2", lnc=2)
    program = compile_logical(graph, core)
    assert (program.physical_cores, hbm_bytes(program)[1]) == (2, 2 * 16 * 64 * 32 * 32)
    assert Opcode.EVENT_SEMAPHORE not in program.instructions["opcode"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "dilation"),
    [
        ((2, 3, 9, 9), 3, 2, 1, 1),
        ((1, 1, 200, 300), 5, 3, 2, 1),
        ((4, 8, 20, 20), 2, 3, 0, 1),
        ((4, 200, 24, 24), 3, 1, 1, 1),
        ((2, 64, 40, 40), 3, 2, 1, 2),
        ((300, 64, 4, 4), 2, 2, 0, 1),
    ],
)
def test_windows_of_every_kind_are_native(shape, kernel, stride, padding, dilation, dtype):
    program = compile_module(module(shape, kernel, stride, padding, dilation, dtype), hardware.get("trn2"))
    assert not program.warnings
    assert hbm_bytes(program)[1] == torch.Size(shape).numel() * dtype.itemsize
    assert simulate(program, hardware.get("trn2")).duration_ps > 0


@pytest.mark.parametrize(
    ("size", "stride", "pad", "gap"), list(product((2, 3, 5), (1, 2, 3), (0, 1), (1, 2)))
)
def test_each_tap_of_a_window_reaches_one_phase(size, stride, pad, gap):
    pooling = Pooling(1, (4, 4), (12, 12), (size, size), (stride, stride), (pad, pad), (gap, gap))
    assert sum(pooling.phases()) == size * size
    assert len(pooling.phases()) <= stride * stride


@pytest.mark.parametrize(("target", "beside"), [("trn1", False), ("trn2", True)])
def test_gpsimd_takes_taps_where_it_works_beside_the_vector_engine(target, beside):
    program = compile_module(module((16, 64, 112, 112), 3, 2, 1), hardware.get(target))
    taps = program.instructions["opcode"] == Opcode.SCALAR_TENSOR_TENSOR
    assert (program.instructions["engine"][taps] == Engine.GPSIMD).any() == beside
    assert tile_races(program) == 0


def test_two_cores_of_trn2_take_at_most_one_and_a_half_times_as_long_as_their_dma_engines():
    core = hardware.get("trn2", lnc=2)
    program = compile_logical(module((16, 64, 112, 112), 3, 2, 1), core)
    assert simulate(program, core).duration_ps * 1e-12 <= 1.5 * sum(hbm_bytes(program)) / core.dma_bandwidth
