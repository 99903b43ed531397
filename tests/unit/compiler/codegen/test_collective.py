import numpy as np
import pytest

from neuron_tools.compiler.codegen.collective import ring_steps
from neuron_tools.simulator.program import Memory
from tests.unit.compiler.modules import compiled, function, moved, tensor

SHARD = tensor((128, 64))
PAIRS = "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
GATHERED = tensor((512, 64))
GROUPS = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"


def collective(opcode: str, attributes: str, result: str, region: str = "") -> str:
    return function(
        f"%a: {SHARD}",
        result,
        f'%r = "stablehlo.{opcode}"(%a) <{{{attributes}}}> {region} : ({SHARD}) -> {result}',
    )


SUM = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %s = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %s : tensor<f32> })"""
SHARD_BYTES = 128 * 64 * 4
CASES = {
    "all_reduce": (collective("all_reduce", GROUPS, SHARD, SUM), 6, SHARD_BYTES // 4 * 6),
    "all_gather": (
        collective("all_gather", f"{GROUPS}, all_gather_dim = 0 : i64", GATHERED), 3, 3 * SHARD_BYTES,
    ),
    "reduce_scatter": (
        collective("reduce_scatter", f"{GROUPS}, scatter_dimension = 0 : i64", tensor((32, 64)), SUM),
        3, 3 * SHARD_BYTES // 4,
    ),
    "collective_permute": (
        collective("collective_permute", PAIRS, SHARD),
        1, SHARD_BYTES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("opcode", CASES)
def test_a_collective_is_a_ring_of_transfers_named_after_it(opcode):
    text, steps, byte_count = CASES[opcode]
    program = compiled(text)
    assert [operation.opcode for operation in program.hlo] == [opcode]
    assert len(program.dmas) == steps
    assert moved(program, Memory.HBM, Memory.HBM) == byte_count
    assert np.all(np.diff(program.instructions["wait_count"].astype(int)) >= 0)
    assert not program.warnings


def test_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    assert ring_steps("all_reduce", 8) == ring_steps("reduce_scatter", 8) + ring_steps("all_gather", 8)
