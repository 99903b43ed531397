import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.records.program import DType, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, softmax, tensor
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

HALF, WIDE = tensor((256, 512), "bf16"), tensor((256, 512))
WIDENED = function(
    f"%a: {HALF}", HALF,
    f"%w = stablehlo.convert %a : ({HALF}) -> {WIDE}",
    f"%e = stablehlo.exponential %w : {WIDE}",
    f"%s = stablehlo.add %e, %w : {WIDE}",
    f"%r = stablehlo.convert %s : ({WIDE}) -> {HALF}",
)  # fmt: skip


def written(program) -> set[DType]:
    compute = program.instructions[program.instructions["opcode"] != Opcode.DMA_TRIGGER]
    return {DType(int(dtype)) for dtype in compute["output_dtype"]} - {DType.NONE}


def test_what_only_16_bit_results_are_made_of_is_kept_in_16_bits():
    assert written(compiled(WIDENED)) == {DType.BF16}


def test_the_option_keeps_the_types_of_the_module():
    exact = compiled(WIDENED, options=CompilerOptions(narrow_intermediates=False))
    assert DType.F32 in written(exact)


def test_sums_stay_wide_and_maxima_are_what_they_choose_from():
    program = compiled(softmax(256, 512, "bf16"))
    rows = program.instructions
    reductions = rows[rows["opcode"] == Opcode.TENSOR_REDUCE]
    assert {DType(int(dtype)) for dtype in reductions["output_dtype"]} == {DType.BF16}
    assert DType.F32 in written(compiled(softmax(256, 512)))


@pytest.mark.parametrize("text", [WIDENED, softmax(2048, 2048, "bf16")])
def test_narrow_tiles_are_never_slower(text):
    times = [
        simulate(compiled(text, options=CompilerOptions(narrow_intermediates=narrow)), CORE).duration_ps
        for narrow in (True, False)
    ]
    assert times[0] <= times[1] * 1.01


def summed(opcode: str, dtype: str) -> str:
    """The sums of rows of two operands' products (or what else `opcode` makes of them), in fp32."""
    operand, sums = tensor((256, 512), dtype), tensor((256,))
    widened = (
        f"%{name}w = stablehlo.convert %{name} : ({operand}) -> {WIDE}" if dtype != "f32" else
        f"%{name}w = stablehlo.abs %{name} : {WIDE}"
        for name in "ab"
    )  # fmt: skip
    return function(
        f"%a: {operand}, %b: {operand}", sums, *widened,
        f"%p = stablehlo.{opcode} %aw, %bw : {WIDE}",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        "%r = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [1] : "
        f"({WIDE}, tensor<f32>) -> {sums}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("opcode", "dtype", "narrow"),
    [("multiply", "bf16", True), ("multiply", "f32", False), ("multiply", "f16", False),
     ("add", "bf16", False)],
)  # fmt: skip
def test_the_terms_of_a_wide_sum_are_as_exact_as_their_factors(opcode, dtype, narrow):
    rows = compiled(summed(opcode, dtype)).instructions
    terms = rows[(rows["opcode"] == Opcode.TENSOR_TENSOR) & (rows["elements"] >= 512)]
    assert set(terms["output_dtype"]) == {DType.BF16 if narrow else DType.F32}


@pytest.mark.parametrize("shape", [(64, 128, 28, 28), (64, 64, 56, 56)])
def test_the_backward_of_a_bf16_batch_norm_takes_at_most_one_and_a_half_times_as_long_as_what_it_moves(shape):
    image = torch.empty(shape, dtype=torch.bfloat16, device="meta")
    channels = torch.empty(shape[1], device="meta")
    backward = torch.ops.aten.native_batch_norm_backward.default
    made = lowered(backward, image, image, *[channels] * 5, True, 1e-5, [True] * 3)
    core = hardware.get("trn1")
    duration_ps = simulate(compile_module(made, core), core).duration_ps
    assert duration_ps * 1e-12 <= 1.5 * 3 * image.numel() * 2 / DRAWN_BY_A_CORE
