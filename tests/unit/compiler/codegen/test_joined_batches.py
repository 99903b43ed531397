"""Products of few rows against a cache that holds batches next to one another."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.compiler.codegen import matmul
from neuron_tools.compiler.codegen.joined_batches import FULL_RATE_BYTES
from neuron_tools.compiler.compile import compile_module
from neuron_tools.records.program import Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, module, moved, tensor, tile_races

POSITIONS, BATCH, SIZE = 4096, 8, 128
CACHE = tensor((POSITIONS, BATCH, SIZE), "bf16")
QUERIES, SCORES = tensor((BATCH, 1, SIZE), "bf16"), tensor((BATCH, 1, POSITIONS), "bf16")


def product(left: str, cache: str, result: str, batch_axis: int, contracting: int) -> str:
    return function(
        f"%a: {left}, %b: {cache}", result,
        f"%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [{batch_axis}], "
        f"contracting_dims = [2] x [{contracting}] : ({left}, {cache}) -> {result}",
    )  # fmt: skip


KEYS = product(QUERIES, CACHE, SCORES, 1, 2)
VALUES = product(SCORES, CACHE, QUERIES, 1, 0)


def cache_rows(program) -> np.ndarray:
    """Bytes of each row in which the cache is loaded."""
    loads = program.dmas[program.dmas["destination_memory"] == Memory.SBUF]
    cache = next(i for i, item in enumerate(program.tensors) if item.shape == (POSITIONS, BATCH, SIZE))
    return loads["descriptor_bytes"][loads["tensor"] == cache]


@pytest.mark.parametrize("text", [KEYS, VALUES], ids=["keys", "values"])
def test_a_cache_is_loaded_once_in_rows_of_all_batches(text):
    program = compiled(text)
    assert set(cache_rows(program)) == {BATCH * SIZE * 2}
    outside = (BATCH * SIZE + BATCH * POSITIONS) * 2
    through = moved(program, Memory.HBM, Memory.SBUF) + moved(program, Memory.SBUF, Memory.HBM)
    assert through == POSITIONS * BATCH * SIZE * 2 + outside


@pytest.mark.parametrize("text", [KEYS, VALUES], ids=["keys", "values"])
def test_model_flops_are_those_of_the_batches(text):
    assert sum(operation.model_flops for operation in compiled(text).hlo) == 2 * BATCH * SIZE * POSITIONS


@pytest.mark.parametrize("text", [KEYS, VALUES], ids=["keys", "values"])
def test_no_tile_is_overwritten_while_in_use(text):
    assert tile_races(compiled(text)) == 0


def test_rows_meet_only_their_own_part_of_the_contraction():
    instructions = compiled(KEYS).instructions
    products = instructions[instructions["opcode"] == Opcode.MATMUL]
    assert set(products["columns"]) == {BATCH}
    assert products["elements"].sum() == BATCH * POSITIONS
    assert (instructions["opcode"] == Opcode.AFFINE_SELECT).any()


def test_it_is_faster_than_one_batch_after_the_other(monkeypatch):
    joined = simulate(compiled(VALUES), CORE).duration_ps
    monkeypatch.setattr(matmul, "join_batches", lambda *_: None)
    assert joined < 0.9 * simulate(compile_module(module(VALUES), CORE), CORE).duration_ps


def test_each_row_keeps_the_columns_of_its_own_batch():
    instructions = compiled(VALUES).instructions
    kept = instructions[instructions["opcode"] == Opcode.TENSOR_REDUCE]
    assert (kept["partitions"] == BATCH).all()
    assert kept["elements"].sum() == BATCH * SIZE


def test_no_more_batches_join_than_full_rows_need():
    many = 4 * FULL_RATE_BYTES // (SIZE * 2)
    cache = tensor((POSITIONS, many, SIZE), "bf16")
    queries, scores = tensor((many, 1, SIZE), "bf16"), tensor((many, 1, POSITIONS), "bf16")
    loads = compiled(product(queries, cache, scores, 1, 2)).dmas
    assert loads["descriptor_bytes"][loads["bytes"] > POSITIONS * SIZE].max() == FULL_RATE_BYTES


@pytest.mark.parametrize("rows", [64, 128])
def test_many_rows_stay_apart(rows):
    left, result = tensor((BATCH, rows, SIZE), "bf16"), tensor((BATCH, rows, POSITIONS), "bf16")
    instructions = compiled(product(left, CACHE, result, 1, 2)).instructions
    assert (instructions["opcode"] == Opcode.AFFINE_SELECT).any() == (2 * rows <= CORE.tensor_columns)
