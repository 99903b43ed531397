"""Rows that fill one tile, as the channels of a batch norm: chunks stay, all partitions work."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.records.program import Engine, Flag, Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

aten = torch.ops.aten
CORE = hardware.get("trn1")


def tensor(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def forward(*shape, dtype=torch.float32):
    channels = [tensor(shape[1], dtype=dtype) for _ in range(4)]
    return aten.native_batch_norm.default, (tensor(*shape, dtype=dtype), *channels, True, 0.1, 1e-5)


def backward(*shape, dtype=torch.float32):
    channels = [tensor(shape[1], dtype=dtype) for _ in range(5)]
    images = [tensor(*shape, dtype=dtype) for _ in range(2)]
    operands = (*images, *channels, True, 1e-5, [True] * 3)
    return aten.native_batch_norm_backward.default, operands


def compiled(call):
    target, arguments = call
    return compile_module(lowered(target, *arguments), CORE)


def moved_bytes(program):
    at_hbm = (program.dmas["source_memory"] == Memory.HBM) | (
        program.dmas["destination_memory"] == Memory.HBM
    )
    return int(program.dmas["bytes"][at_hbm].sum())


@pytest.mark.parametrize("shape", [(16, 64, 32, 32), (16, 32, 16, 16), (16, 256, 28, 28)])
@pytest.mark.parametrize(("call", "times"), [(forward, 2), (backward, 3)])
def test_each_operand_moves_once(shape, call, times):
    size = 4 * torch.Size(shape).numel()
    assert times * size <= moved_bytes(compiled(call(*shape))) < 1.02 * times * size


@pytest.mark.parametrize("call", [forward, backward])
def test_64_channels_take_at_most_one_and_a_half_times_as_long_as_their_bytes(call):
    program = compiled(call(16, 64, 32, 32))
    drawn = CORE.dma_bandwidth * CORE.dma_streaming_efficiency
    assert simulate(program, CORE).duration_ps * 1e-12 <= 1.5 * moved_bytes(program) / drawn


@pytest.mark.parametrize("shape", [(32, 256, 14, 14), (64, 512, 7, 7)])
@pytest.mark.parametrize(("call", "times"), [(forward, 2), (backward, 3)])
def test_small_images_lie_with_several_channels_on_a_partition(shape, call, times):
    program = compiled(call(*shape, dtype=torch.bfloat16))
    moved = times * 2 * torch.Size(shape).numel()
    long = program.dmas["descriptor_bytes"] >= 512
    assert program.dmas["bytes"][long].sum() >= moved
    assert moved_bytes(program) < 1.1 * moved
    assert tile_races(program) == 0
    assert simulate(program, CORE).duration_ps * 1e-12 <= 2.4 * moved / DRAWN_BY_A_CORE


@pytest.mark.parametrize("shape", [(64, 128, 16, 16), (64, 256, 8, 8), (32, 256, 14, 14), (64, 64, 32, 32)])
@pytest.mark.parametrize(("call", "times"), [(forward, 2), (backward, 3)])
def test_small_planes_take_at_most_one_and_a_half_times_as_long_as_their_bytes(shape, call, times):
    program = compiled(call(*shape))
    bound_s = times * 4 * torch.Size(shape).numel() / DRAWN_BY_A_CORE
    assert tile_races(program) == 0
    assert simulate(program, CORE).duration_ps * 1e-12 <= 1.5 * bound_s


def test_each_row_of_a_partition_has_statistics_of_its_own():
    shape = (32, 256, 14, 14)
    program = compiled(forward(*shape, dtype=torch.bfloat16))
    instructions = program.instructions
    summed = (instructions["opcode"] == Opcode.BN_STATS) | (
        (instructions["opcode"] == Opcode.ACTIVATE) & (instructions["flags"] & Flag.REDUCES != 0)
    )
    assert (instructions["elements"][summed] <= 14 * 14).all()
    assert summed.sum() >= 32 * 256 / 128


@pytest.mark.parametrize(("call", "times"), [(forward, 2), (backward, 3)])
def test_bf16_images_larger_than_the_rings_take_at_most_one_and_a_half_times_as_long_as_they_move(
    call, times
):
    shape = (32, 64, 64, 64)
    duration = simulate(compiled(call(*shape, dtype=torch.bfloat16)), CORE).duration_ps * 1e-12
    assert duration <= 1.5 * times * 2 * torch.Size(shape).numel() / DRAWN_BY_A_CORE


def test_of_operands_larger_than_sbuf_as_many_tiles_stay_as_fit():
    shape = (32, 64, 64, 64)
    size = 2 * torch.Size(shape).numel()
    moved = moved_bytes(compiled(backward(*shape, dtype=torch.bfloat16)))
    everything, kept_bytes = 5 * size, 0.4 * CORE.sbuf_partitions * CORE.sbuf_bytes_per_partition
    assert 3 * size < moved < everything - kept_bytes


def test_scales_and_shifts_of_a_channel_are_one_instruction_for_each_tile():
    program = compiled(forward(16, 64, 32, 32))
    rows = program.instructions
    whole = (rows["elements"] >= 1024) & (rows["engine"] != Engine.SYNC)
    assert sorted(set(rows["opcode"][whole].tolist())) == sorted(
        {int(Opcode.BN_STATS), int(Opcode.TENSOR_SCALAR)}
    )
    assert whole.sum() == 2 * 8  # statistics and the result of eight tiles


def test_two_partitions_share_each_of_64_rows():
    program = compiled(forward(16, 64, 32, 32))
    vector = program.instructions[program.instructions["engine"] == Engine.VECTOR]
    assert vector["partitions"].max() == 128


@pytest.mark.parametrize("shape", [(15, 64, 8, 8), (1, 3, 7, 7), (3, 100, 6, 6), (2, 1, 512, 512)])
def test_rows_that_cannot_be_shared_evenly_are_left_whole(shape):
    for call in (forward, backward):
        program = compiled(call(*shape))
        assert not program.warnings
        assert simulate(program, CORE).duration_ps > 0


def test_rows_in_one_piece_stay_whole():
    arguments = (tensor(128, 768), [768], tensor(768), tensor(768), 1e-5)
    program = compiled((aten.native_layer_norm.default, arguments))
    assert (program.instructions["elements"] == 768).any()
    assert not (program.instructions["elements"] == 512).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_few_channels_add_up_while_they_are_loaded(dtype):
    image = tensor(32, 64, 32, 32, dtype=dtype)
    program = compiled((aten.sum.dim_IntList, (image, [0, 2, 3])))
    assert tile_races(program, CORE) == 0
    bound_s = image.numel() * dtype.itemsize / DRAWN_BY_A_CORE
    assert simulate(program, CORE).duration_ps * 1e-12 < 3 * bound_s


@pytest.mark.parametrize("images", [1, 2])
def test_groups_of_channels_share_their_moments_between_partitions(images):
    channels = tensor(320)
    arguments = tensor(images, 320, 64, 64), channels, channels, images, 320, 64 * 64, 32, 1e-5
    program = compiled((aten.native_group_norm.default, arguments))
    moments = program.instructions[program.instructions["opcode"] == Opcode.BN_STATS]
    assert moments["partitions"].min() == CORE.sbuf_partitions
    assert tile_races(program) == 0
    assert simulate(program, CORE).duration_ps * 1e-12 <= 1.5 * moved_bytes(program) / DRAWN_BY_A_CORE
