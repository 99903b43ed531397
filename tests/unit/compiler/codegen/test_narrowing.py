import pytest

from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.records.program import DType, Opcode
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, softmax, tensor

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
