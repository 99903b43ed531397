"""Short rows that share a partition: a row's number is a scalar, or is spread over the row's elements."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.records.program import Engine, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

aten = torch.ops.aten


def program_of(target, arguments, core):
    return compile_module(lowered(target, *arguments), core)


def softmax(*shape, dtype=torch.bfloat16):
    states = torch.empty(shape, dtype=dtype, device="meta")
    return aten._softmax.default, (states, -1, False)


def softmax_backward(*shape, dtype=torch.bfloat16):
    states = torch.empty(shape, dtype=dtype, device="meta")
    return aten._softmax_backward_data.default, (states, states, -1, dtype)


@pytest.mark.parametrize(("call", "times"), [(softmax, 2), (softmax_backward, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_softmax_of_short_rows_takes_little_longer_than_its_bytes(call, times, dtype):
    shape, core = (16, 12, 128, 128), hardware.get("trn1")
    program = program_of(*call(*shape, dtype=dtype), core)
    bound_s = times * dtype.itemsize * torch.Size(shape).numel() / DRAWN_BY_A_CORE
    assert tile_races(program) == 0
    assert simulate(program, core).duration_ps * 1e-12 <= 1.25 * bound_s


def test_numbers_of_rows_are_scalars_of_an_instruction_for_each_row():
    program = program_of(*softmax(16, 12, 128, 128), hardware.get("trn1"))
    rows = program.instructions
    shifted = (rows["opcode"] == Opcode.ACTIVATE) & (rows["elements"] == 128)
    assert shifted.sum() >= 16 * 12 * 128 / 128
    assert not (rows["opcode"] == Opcode.TENSOR_TENSOR).any()


def test_numbers_of_very_short_rows_are_spread_by_one_instruction():
    program = program_of(*softmax(4096, 4, 8), hardware.get("trn1"))
    rows = program.instructions
    on_elements = rows["engine"] == Engine.VECTOR
    assert (rows["elements"][on_elements] > 8).any()
    assert not ((rows["elements"] == 8) & on_elements).any()


@pytest.mark.parametrize("shape", [(1000, 100), (129, 3, 50), (300, 7)])
@pytest.mark.parametrize("call", [softmax, softmax_backward])
def test_rows_of_every_number_and_length_are_native(shape, call):
    program = program_of(*call(*shape), hardware.get("trn2"))
    assert not program.warnings
    assert tile_races(program) == 0
