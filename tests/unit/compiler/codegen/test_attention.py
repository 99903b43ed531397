import numpy as np
import pytest

from neuron_tools.compiler.codegen.attention_tiles import Shapes, iterations
from neuron_tools.records.program import Memory, Opcode
from tests.unit.compiler.modules import (
    attention,
    compiled,
    computed,
    moved,
    multiply_accumulates,
    tensor,
    tile_races,
)

HEADS, ROWS, DEPTH = 2, 2048, 64
IO_BYTES = HEADS * ROWS * DEPTH * 2


def make(**options):
    return compiled(attention(HEADS, ROWS, ROWS, DEPTH, **options))


@pytest.fixture(scope="module")
def full():
    return make()


@pytest.fixture(scope="module")
def causal():
    return make(causal=True)


def test_scores_never_leave_the_chip(full, causal):
    for program in (full, causal):
        assert moved(program, Memory.SBUF, Memory.HBM) == IO_BYTES
        assert moved(program, Memory.HBM, Memory.SBUF) == 3 * IO_BYTES
        assert [operation.opcode for operation in program.hlo] == ["fusion"]
        assert program.hlo[0].model_flops == 4 * HEADS * ROWS * ROWS * DEPTH


def test_both_products_and_every_exponential_are_computed(full):
    assert multiply_accumulates(full) == 2 * HEADS * ROWS * ROWS * DEPTH
    exponentials = full.activations.index("exp")
    rows = full.instructions[
        (full.instructions["opcode"] == Opcode.ACTIVATE) & (full.instructions["activation"] == exponentials)
    ]
    assert int((rows["partitions"].astype(np.int64) * rows["elements"]).sum()) == HEADS * ROWS * ROWS
    assert computed(full, "TRANSPOSE") == HEADS * ROWS * ROWS


def test_a_causal_block_leaves_the_future_out(full, causal):
    assert multiply_accumulates(causal) < 0.6 * multiply_accumulates(full)


def test_no_tile_is_overwritten_while_in_use(full, causal):
    assert tile_races(full) == 0
    assert tile_races(causal) == 0


@pytest.mark.parametrize("rows", [70, 200, 1000])
def test_odd_sizes_compile(rows):
    program = compiled(attention(1, rows, rows, 48, causal=True))
    assert tile_races(program) == 0


def test_causal_iterations_cover_every_visible_score_once():
    shapes = Shapes(batch=2, shared=1, rows=700, columns=700, depth=64, width=64)
    at = iterations(shapes, tile=128, chunk=256, is_causal=True)
    seen = np.zeros((2, 700, 700), int)
    for head, row, chunk, width in zip(at.head, at.row, at.chunk, at.width):
        seen[head, row * 128 : row * 128 + 128, chunk * 256 : chunk * 256 + width] += 1
    visible = np.tril(np.ones((700, 700), bool))
    assert np.all(seen[:, visible] == 1)
    assert seen.max() == 1


@pytest.mark.parametrize("rows", [256, 384])
def test_a_mask_that_heads_share_is_loaded_once(rows):
    mask, full = tensor((1, rows, rows)), tensor((HEADS, rows, rows))
    text = attention(HEADS, rows, rows, DEPTH).replace("%q:", f"%mask: {mask}, %q:")
    text = text.replace(
        f"%x = stablehlo.add %s2, %s2 : {full}",
        f"%mm = stablehlo.broadcast_in_dim %mask, dims = [0, 1, 2] : ({mask}) -> {full}\n"
        f"%x = stablehlo.add %s2, %mm : {full}",
    )
    program = compiled(text)
    loads = program.dmas[program.dmas["destination_memory"] == Memory.SBUF]
    shared = next(i for i, item in enumerate(program.tensors) if item.shape == (1, rows, rows))
    assert loads["bytes"][loads["tensor"] == shared].sum() == rows * rows * 4
    assert tile_races(program) == 0
