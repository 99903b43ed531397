import numpy as np
import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.compiler.codegen.attention_tiles import Shapes, iterations
from neuron_tools.records.program import Memory, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import (
    attention,
    compiled,
    computed,
    moved,
    multiply_accumulates,
    tensor,
    tile_races,
)
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

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


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("rows", [128, 512, 2048])
def test_scores_of_four_bytes_never_leave_the_chip_either(rows, is_causal):
    program = compiled(attention(HEADS, rows, rows, DEPTH, dtype="f32", causal=is_causal))
    size = HEADS * rows * DEPTH * 4
    assert not program.warnings
    assert moved(program, Memory.SBUF, Memory.HBM) == size
    assert moved(program, Memory.HBM, Memory.SBUF) == 3 * size
    assert tile_races(program) == 0


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_queries_of_an_image_meet_the_few_keys_of_a_text_in_one_loop(dtype):
    program = compiled(attention(8, 1024, 77, DEPTH, dtype=dtype))
    assert [operation.opcode for operation in program.hlo] == ["fusion"]
    assert moved(program, Memory.SBUF, Memory.HBM) == 8 * 1024 * DEPTH * (4 if dtype == "f32" else 2)
    assert tile_races(program) == 0


def training_forward(batch, heads, rows, dtype=torch.bfloat16, dropout=0.0):
    """The forward of attention on heads that lie beside each other in tokens."""
    target = torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default
    tokens = torch.empty((batch, rows, heads, DEPTH), dtype=dtype, device="meta").transpose(1, 2)
    return lowered(target, tokens, tokens, tokens, None, dropout, False, False)


def test_logarithms_of_sums_are_made_in_the_block_and_stored_as_rows():
    batch, heads, rows = 4, 12, 128
    program = compile_module(training_forward(batch, heads, rows), hardware.get("trn1"))
    stored = program.dmas[program.dmas["destination_memory"] == Memory.HBM]
    logarithms = stored[stored["descriptor_bytes"] == rows * 4]
    assert int(stored["bytes"].sum()) == batch * heads * rows * (DEPTH * 2 + 4)
    assert int(logarithms["bytes"].sum()) == batch * heads * rows * 4
    assert not program.warnings


@pytest.mark.parametrize(("dtype", "limit"), [(torch.bfloat16, 4), (torch.float32, 3.5)])
def test_heads_of_64_and_128_tokens_in_training_are_near_what_they_move(dtype, limit):
    core = hardware.get("trn1")
    program = compile_module(training_forward(16, 12, 128, dtype), core)
    moved_bytes = 4 * 16 * 12 * 128 * DEPTH * dtype.itemsize
    assert simulate(program, core).duration_ps * 1e-12 <= limit * moved_bytes / DRAWN_BY_A_CORE


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_dropout_is_one_instruction_for_each_chunk_of_weights(dtype):
    core = hardware.get("trn1")
    plain, lossy = (compile_module(training_forward(4, 12, 128, dtype, dropout=p), core) for p in (0.0, 0.1))
    assert [operation.opcode for operation in lossy.hlo] == ["fusion"]
    assert lossy.dmas["bytes"].sum() == plain.dmas["bytes"].sum()
    assert computed(lossy, "DROPOUT") == 4 * 12 * 128 * 128
    assert len(lossy.instructions) - len(plain.instructions) == 4 * 12
    assert tile_races(lossy) == 0
