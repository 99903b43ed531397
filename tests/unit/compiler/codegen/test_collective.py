import numpy as np
import pytest

from neuron_tools.records.program import CollectiveKind, Memory
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, tensor

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
    "all_reduce": (collective("all_reduce", GROUPS, SHARD, SUM), CollectiveKind.ALL_REDUCE, SHARD_BYTES),
    "all_gather": (
        collective("all_gather", f"{GROUPS}, all_gather_dim = 0 : i64", GATHERED),
        CollectiveKind.ALL_GATHER, 4 * SHARD_BYTES,
    ),
    "reduce_scatter": (
        collective("reduce_scatter", f"{GROUPS}, scatter_dimension = 0 : i64", tensor((32, 64)), SUM),
        CollectiveKind.REDUCE_SCATTER, SHARD_BYTES,
    ),
    "collective_permute": (
        collective("collective_permute", PAIRS, SHARD), CollectiveKind.PERMUTE, SHARD_BYTES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("opcode", CASES)
def test_a_collective_is_one_part_in_its_replica_group(opcode):
    text, kind, byte_count = CASES[opcode]
    program = compiled(text)
    (part,) = program.collectives
    assert (part.kind, part.byte_count) == (kind, byte_count)
    assert part.group == ((0, 1) if opcode == "collective_permute" else (0, 1, 2, 3))
    assert [operation.opcode for operation in program.hlo] == [opcode]
    assert program.dmas["collective"].tolist() == [0]
    assert not program.warnings


def test_the_result_is_read_after_the_collective():
    text = (
        CASES["all_reduce"][0]
        .replace("%r =", "%s =")
        .replace("return %r", f"%r = stablehlo.tanh %s : {SHARD}\nreturn %r")
    )
    program = compiled(text)
    part = int(np.flatnonzero(program.dmas["collective"] == 0)[0])
    reads = (program.dmas["source_memory"] == Memory.HBM) & (
        program.dmas["destination_memory"] == Memory.SBUF
    )
    simulation = simulate(program, CORE)
    assert simulation.dma_start_ps[reads].min() >= simulation.dma_end_ps[part]


def test_a_collective_in_a_loop_is_taken_part_in_each_trip():
    body = f"""
    func.func @main(%a: {SHARD}) -> {SHARD} {{
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%i = %c0, %v = %a) : tensor<i32>, {SHARD}
       cond {{
        %m = stablehlo.constant dense<3> : tensor<i32>
        %t = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
       }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %u = "stablehlo.all_reduce"(%v) <{{{GROUPS}}}> {SUM} : ({SHARD}) -> {SHARD}
        stablehlo.return %j, %u : tensor<i32>, {SHARD}
       }}
      return %0#1 : {SHARD}
    }}"""
    program = compiled(body)
    assert len(program.collectives) == 3
    assert sorted(program.dmas["collective"].tolist()) == [0, 1, 2]


def test_operands_of_one_collective_move_together():
    other = tensor((32, 64))
    program = compiled(
        f"""func.func @main(%a: {SHARD}, %b: {other}) -> ({SHARD}, {other}) {{
        %r:2 = "stablehlo.all_reduce"(%a, %b) <{{{GROUPS}}}> {SUM} : ({SHARD}, {other}) -> ({SHARD}, {other})
        return %r#0, %r#1 : {SHARD}, {other}
        }}"""
    )
    (part,) = program.collectives
    assert part.byte_count == SHARD_BYTES + 32 * 64 * 4
