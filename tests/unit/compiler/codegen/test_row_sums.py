"""Sums over rows beside other work: products with ones, or additions of the Vector engine."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.records.program import Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

aten = torch.ops.aten
CORE = hardware.get("trn1")


def program_of(target, *arguments):
    return compile_module(lowered(target, *arguments), CORE)


def layer_norm_backward(rows, columns, dtype):
    data, weight = (torch.empty(shape, dtype=dtype, device="meta") for shape in ((rows, columns), (columns,)))
    moment = torch.empty(rows, 1, device="meta")
    target = aten.native_layer_norm_backward.default
    return program_of(target, data, data, [columns], moment, moment, weight, weight, [True] * 3)


@pytest.mark.parametrize(
    ("rows", "columns", "times"), [(4096, 768, 1.5), (2048, 768, 1.6), (4096, 1024, 1.5)]
)
def test_backward_of_a_layer_norm_takes_little_longer_than_its_bytes(rows, columns, times):
    program = layer_norm_backward(rows, columns, torch.float32)
    bound_s = 3 * rows * columns * 4 / DRAWN_BY_A_CORE
    assert tile_races(program) == 0
    assert simulate(program, CORE).duration_ps * 1e-12 <= times * bound_s


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_leave_a_busy_vector_engine_to_the_tensor_engine(dtype):
    rows = layer_norm_backward(4096, 768, dtype).instructions
    assert (rows["opcode"] == Opcode.MATMUL).any()
    shared = (rows["opcode"] == Opcode.TENSOR_TENSOR) | (rows["opcode"] == Opcode.SCALAR_TENSOR_TENSOR)
    assert (shared & (rows["elements"] == 768)).sum() == 4 * 4096 / 128


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "columns"), [(1024, 4096), (300, 5000)])
def test_where_psum_has_no_room_for_a_row_of_sums_tiles_stand_and_ones_pass_them(rows, columns, dtype):
    program = layer_norm_backward(rows, columns, dtype)
    products = program.instructions[program.instructions["opcode"] == Opcode.MATMUL]
    blocks = 2 * -(-rows // 128) * -(-columns // 128)  # of the weight's and the bias's gradient
    assert set(products["elements"]) == {1}
    assert len(products) >= blocks
    assert not (program.instructions["opcode"] == Opcode.PARTITION_REDUCE).any()
    assert tile_races(program) == 0


@pytest.mark.parametrize(("dtype", "times"), [(torch.float32, 1.55), (torch.bfloat16, 1.85)])
def test_backward_of_a_layer_norm_of_wide_rows_keeps_step_with_its_bytes(dtype, times):
    program = layer_norm_backward(4096, 4096, dtype)
    bound_s = 3 * 4096 * 4096 * dtype.itemsize / DRAWN_BY_A_CORE
    assert simulate(program, CORE).duration_ps * 1e-12 <= times * bound_s


@pytest.mark.parametrize("shape", [(4096, 768), (4096, 3072), (300, 100)])
def test_a_sum_over_rows_alone_takes_little_longer_than_its_bytes(shape):
    data = torch.empty(shape, device="meta")
    program = program_of(aten.sum.dim_IntList, data, [0])
    bound_s = data.nbytes / DRAWN_BY_A_CORE
    assert tile_races(program) == 0
    assert simulate(program, CORE).duration_ps * 1e-12 <= 1.5 * bound_s + 10e-6
