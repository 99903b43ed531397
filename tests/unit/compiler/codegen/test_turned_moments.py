"""Mean and variance by the Tensor engine."""

import numpy as np
import pytest

from neuron_tools.records.program import Engine, Opcode
from tests.unit.compiler.modules import compiled, layer_norm, tile_races


def opcodes(program, engine):
    rows = program.instructions[program.instructions["engine"] == engine]
    return {Opcode(opcode) for opcode in np.unique(rows["opcode"])}


def test_wide_rows_with_weight_and_bias_take_their_statistics_on_the_tensor_engine():
    program = compiled(layer_norm(2048, 4096, "bf16"))
    assert Opcode.BN_STATS not in opcodes(program, Engine.VECTOR)
    assert opcodes(program, Engine.TENSOR) == {Opcode.LDWEIGHTS, Opcode.MATMUL, Opcode.TRANSPOSE}


def test_every_block_meets_itself_and_is_turned_back_once():
    program = compiled(layer_norm(1024, 4096, "bf16"))
    tensor = program.instructions[program.instructions["engine"] == Engine.TENSOR]
    blocks = 1024 // 128 * 4096 // 128
    assert np.count_nonzero(tensor["opcode"] == Opcode.MATMUL) == blocks
    assert np.count_nonzero(tensor["opcode"] == Opcode.TRANSPOSE) == blocks


def test_the_operand_is_loaded_once_and_turned():
    program = compiled(layer_norm(1024, 4096, "bf16"))
    turned = program.dmas[program.dmas["transpose"] != 0]
    assert turned["bytes"].sum() == 1024 * 4096 * 2


@pytest.mark.parametrize(("columns", "dtype"), [(4096, "f32"), (4000, "bf16")])
def test_what_cannot_be_turned_by_dma_keeps_the_vector_engine(columns, dtype):
    program = compiled(layer_norm(2048, columns, dtype))
    assert not (program.dmas["transpose"] != 0).any()
    assert Opcode.BN_AGGREGATE in opcodes(program, Engine.VECTOR)


@pytest.mark.parametrize("columns", [2048, 4096, 8192])
def test_no_tile_is_overwritten_before_it_is_read(columns):
    program = compiled(layer_norm(1100, columns, "bf16"))
    assert (program.dmas["transpose"] != 0).any()
    assert tile_races(program) == 0
