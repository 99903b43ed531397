import pytest

from neuron_tools.compiler.passes.fusion import fuse
from neuron_tools.compiler.passes.groups import Domain, Shape, reduction_domain
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.records.program import Memory
from tests.unit.compiler.modules import (
    compiled,
    function,
    layer_norm,
    matmul,
    module,
    moved,
    reduction,
    softmax,
    tensor,
)

V = "tensor<64x128xf32>"


def groups(text, **options):
    return [
        (group.kind, [op.opcode for op in group.operations])
        for group in fuse(optimise(module(text)), **options).groups
    ]


def test_an_elementwise_chain_is_one_loop():
    text = function(f"%a: {V}", V, f"%0 = stablehlo.tanh %a : {V}", f"%1 = stablehlo.abs %0 : {V}",
                    f"%r = stablehlo.add %1, %a : {V}")  # fmt: skip
    assert groups(text) == [("loop", ["tanh", "abs", "add"])]


def test_without_fusion_every_operation_is_alone():
    text = function(f"%a: {V}", V, f"%0 = stablehlo.tanh %a : {V}", f"%r = stablehlo.abs %0 : {V}")
    assert groups(text, fuse_operations=False) == [("loop", ["tanh"]), ("loop", ["abs"])]


def test_softmax_is_one_loop_with_rows_on_partitions():
    (group,) = fuse(optimise(module(softmax(64, 128)))).groups
    assert group.domain == Domain(1, 64, 128)
    assert [op.opcode for op in group.operations] == ["reduce", "subtract", "exponential", "reduce", "divide"]
    assert group.shapes[group.operations[0].results[0]] is Shape.ROW


def test_layer_norm_is_one_loop():
    assert len(groups(layer_norm(64, 128))) == 1


def test_two_branches_that_meet_are_one_loop():
    text = function(f"%a: {V}, %b: {V}", V, f"%0 = stablehlo.tanh %a : {V}", f"%1 = stablehlo.abs %b : {V}",
                    f"%r = stablehlo.add %0, %1 : {V}")  # fmt: skip
    assert len(groups(text)) == 1


def test_bias_and_activation_join_the_matmul():
    text = matmul(64, 32, 128, "f32").replace(
        "%b: tensor<32x128xf32>", "%b: tensor<32x128xf32>, %c: tensor<128xf32>"
    )
    text = text.replace(
        f"return %r : {V}",
        f"%d = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<128xf32>) -> {V}\n"
        f"%e = stablehlo.add %r, %d : {V}\n%f = stablehlo.tanh %e : {V}\nreturn %f : {V}",
    )
    assert groups(text) == [("dot", ["dot_general", "add", "tanh"])]


def test_an_update_by_a_product_joins_it_though_it_begins_without_it():
    """As Adam's do: the old average is scaled before the new gradient is added."""
    text = matmul(64, 32, 128, "f32").replace("%b: tensor<32x128xf32>", f"%b: tensor<32x128xf32>, %v: {V}")
    text = text.replace(
        f"return %r : {V}",
        f"%0 = stablehlo.abs %v : {V}\n%1 = stablehlo.multiply %r, %r : {V}\n"
        f"%2 = stablehlo.add %0, %1 : {V}\nreturn %2 : {V}",
    )
    assert groups(text) == [("dot", ["dot_general", "abs", "multiply", "add"])]


def test_an_update_does_not_join_a_product_over_a_group_between():
    text = matmul(64, 32, 128, "f32").replace("%b: tensor<32x128xf32>", f"%b: tensor<32x128xf32>, %v: {V}")
    text = text.replace(
        f"return %r : {V}",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%s = stablehlo.reduce(%r init: %z) applies stablehlo.add across dimensions = [0, 1] "
        f": ({V}, tensor<f32>) -> tensor<f32>\n"
        f"%t = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {V}\n"
        f"%0 = stablehlo.multiply %v, %t : {V}\n%2 = stablehlo.add %0, %r : {V}\nreturn %2 : {V}",
    )
    assert [kind for kind, _ in groups(text)].count("dot") == 1
    assert groups(text)[0] == ("dot", ["dot_general"])


def test_a_consumer_of_a_sum_over_rows_starts_a_new_group():
    text = reduction("add", (64, 128), (0,)).replace(
        "return %r : tensor<128xf32>", "%s = stablehlo.tanh %r : tensor<128xf32>\nreturn %s : tensor<128xf32>"
    )
    assert groups(text) == [("loop", ["reduce"]), ("loop", ["tanh"])]


def test_groups_come_after_what_they_read():
    text = function(
        f"%a: {V}, %w: tensor<128x128xf32>",
        V,
        f"%0 = stablehlo.tanh %a : {V}",
        "%1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] "
        f": ({V}, tensor<128x128xf32>) -> {V}",
        f"%r = stablehlo.add %1, %0 : {V}",
    )
    made: set[int] = set()
    plan = fuse(optimise(module(text)))
    for group in plan.groups:
        for operation in group.operations:
            assert all(v in made or v in plan.module.parameters for v in operation.operands)
            made.update(operation.results)


def test_reductions_choose_their_space():
    def space(shape, axes):
        read = module(reduction("add", shape, axes))
        return reduction_domain(read.operations[-1], read)

    assert space((4, 8, 16), (2,)) == (Domain(1, 32, 16), Shape.ROW)
    assert space((4, 8, 16), (0,)) == (Domain(1, 4, 128), Shape.LATE)
    assert space((4, 8, 16), (0, 2)) == (Domain(4, 8, 16), Shape.ROW)
    assert space((4, 8, 16), (1,)) == (Domain(1, 32, 16), Shape.LATE)
    assert space((4, 8, 16), (0, 1, 2)) == (Domain(1, 1, 512), Shape.ROW)
    assert space((64, 64, 16), (0, 1, 2)) == (None, Shape.LATE)
    assert space((4, 8, 16, 2), (0, 2)) is None


SQUARE = "tensor<64x64xf32>"


def test_an_update_reads_its_parameter_again_rather_than_begin_in_the_forward_pass():
    """Begun there, what it makes of the parameter would pass memory until the gradient is there."""
    text = function(
        f"%p: {SQUARE}, %w: {SQUARE}", SQUARE, f"%0 = stablehlo.tanh %p : {SQUARE}",
        _product("%1", "%0", "%w"), f"%2 = stablehlo.multiply %p, %p : {SQUARE}",
        f"%r = stablehlo.subtract %2, %1 : {SQUARE}",
    )  # fmt: skip
    assert groups(text) == [("loop", ["tanh"]), ("dot", ["dot_general", "multiply", "subtract"])]


def _product(result, left, right):
    types = f"({SQUARE}, {SQUARE}) -> {SQUARE}"
    return f"{result} = stablehlo.dot_general {left}, {right}, contracting_dims = [1] x [0] : {types}"


@pytest.mark.parametrize("has_barrier", [True, False])
def test_what_is_computed_again_behind_a_barrier_runs_where_the_program_says(has_barrier):
    barrier = f"%b = stablehlo.optimization_barrier %a : {SQUARE}"
    late = [barrier, _product("%2", "%b", "%w")] if has_barrier else [_product("%2", "%w", "%w")]
    text = function(
        f"%a: {SQUARE}, %w: {SQUARE}", SQUARE, _product("%0", "%a", "%w"), _product("%1", "%0", "%w"), *late,
        _product("%r", "%1", "%2"),
    )  # fmt: skip
    read = module(text)
    first, second, late, last = (each.results[0] for each in read.operations if each.opcode == "dot_general")
    order = [group.operations[0].results[0] for group in fuse(optimise(read)).groups if group.kind == "dot"]
    assert order == ([first, second, late, last] if has_barrier else [first, late, second, last])


def test_a_result_that_is_widened_is_stored_once():
    """As gradients of weights under autocast: a product in bf16, returned in fp32."""
    left, right, wide = tensor((512, 256), "bf16"), tensor((256, 512), "bf16"), tensor((512, 512))
    product = tensor((512, 512), "bf16")
    text = function(
        f"%a: {left}, %b: {right}",
        wide,
        f"%p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({left}, {right}) -> {product}",
        f"%r = stablehlo.convert %p : ({product}) -> {wide}",
    )
    assert moved(compiled(text), Memory.SBUF, Memory.HBM) == 512 * 512 * 4
