from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.recognise_products import recognise_products
from tests.unit.compiler.modules import compiled, function, module, multiply_accumulates, opcode_names, tensor

ROWS, COLUMNS = 512, 1024
HALF, WIDE = tensor((ROWS, COLUMNS), "bf16"), tensor((ROWS, COLUMNS))


def sum_of_products(matrix: str = "%a", axis: int = 1) -> str:
    kept = (ROWS, COLUMNS)[1 - axis]
    return function(
        f"%a: {HALF}, %v: {tensor((COLUMNS,), 'bf16')}", tensor((kept,)),
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%t = stablehlo.tanh %a : {HALF}",
        f"%w = stablehlo.convert {matrix} : ({HALF}) -> {WIDE}",
        f"%u = stablehlo.convert %v : ({tensor((COLUMNS,), 'bf16')}) -> {tensor((COLUMNS,))}",
        f"%b = stablehlo.broadcast_in_dim %u, dims = [1] : ({tensor((COLUMNS,))}) -> {WIDE}",
        f"%m = stablehlo.multiply %w, %b : {WIDE}",
        f"%r = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [{axis}] "
        f": ({WIDE}, tensor<f32>) -> {tensor((kept,))}",
    )  # fmt: skip


def after(text: str) -> list[str]:
    return opcode_names(eliminate_dead_code(recognise_products(module(text))))


def test_matrix_times_vector_runs_on_the_tensor_engine_in_the_narrow_type():
    assert "dot_general" in after(sum_of_products())
    assert "multiply" not in after(sum_of_products())
    assert multiply_accumulates(compiled(sum_of_products())) == ROWS * COLUMNS


def test_a_sum_over_the_other_axis_is_no_such_product():
    assert "dot_general" not in after(sum_of_products(axis=0))


def test_what_a_loop_makes_is_summed_in_the_loop():
    assert "dot_general" not in after(sum_of_products("%t"))
