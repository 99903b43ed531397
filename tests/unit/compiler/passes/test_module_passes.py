"""Before and after of the module-to-module passes on small modules."""

import pytest

from neuron_tools.compiler.passes.algebra import simplify_algebra
from neuron_tools.compiler.passes.common_subexpressions import eliminate_common_subexpressions
from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.fold_constants import fold_constants
from neuron_tools.compiler.passes.narrow_types import narrow_types
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.compiler.passes.recognise_activations import base_name, recognise_activations
from neuron_tools.compiler.passes.recognise_moments import recognise_moments
from neuron_tools.compiler.passes.simplify import simplify
from tests.unit.compiler.modules import function, layer_norm, module, opcode_names, reduction, tensor

V4 = "tensor<4xf32>"
M48 = "tensor<4x8xf32>"


def test_dead_code_goes_with_all_that_only_it_needed():
    before = module(
        function(
            f"%a: {V4}",
            V4,
            f"%0 = stablehlo.tanh %a : {V4}",
            f"%1 = stablehlo.abs %0 : {V4}",
            f"%r = stablehlo.negate %a : {V4}",
        )
    )
    assert opcode_names(eliminate_dead_code(before)) == ["negate"]


def test_operations_on_splats_become_constants():
    before = module(function(
        f"%a: {V4}", V4, f"%c = stablehlo.constant dense<2.0> : {V4}", f"%0 = stablehlo.rsqrt %c : {V4}",
        f"%r = stablehlo.multiply %a, %0 : {V4}",
    ))  # fmt: skip
    folded = fold_constants(before).operations[1]
    assert folded.opcode == "constant"
    assert abs(folded.attributes["value"] - 2**-0.5) < 1e-12


def test_division_of_constants_by_zero_is_left_alone():
    before = module(function(
        f"%a: {V4}", V4, f"%c = stablehlo.constant dense<0.0> : {V4}", f"%0 = stablehlo.rsqrt %c : {V4}",
        f"%r = stablehlo.multiply %a, %0 : {V4}",
    ))  # fmt: skip
    assert opcode_names(fold_constants(before)) == ["constant", "rsqrt", "multiply"]


@pytest.mark.parametrize(
    ("direction", "bound", "always"),
    [("GE", 0, True), ("LT", 4, True), ("GT", 3, False), ("LE", 2, None), ("EQ", 1, None), ("LT", 0, False)],
)
def test_comparisons_of_a_counter_with_a_bound_that_it_never_crosses_are_constants(direction, bound, always):
    counter, truth = "tensor<4xi32>", "tensor<4xi1>"
    folded = fold_constants(module(function(
        "", truth, f"%i = stablehlo.iota dim = 0 : {counter}",
        f"%c = stablehlo.constant dense<{bound}> : {counter}",
        f"%r = stablehlo.compare {direction}, %i, %c : ({counter}, {counter}) -> {truth}",
    )))  # fmt: skip
    last = folded.operations[-1]
    assert (last.attributes["value"] if last.opcode == "constant" else None) is always


def test_chains_of_reshapes_and_back_transposes_vanish():
    before = module(function(
        f"%a: {M48}", M48,
        f"%0 = stablehlo.reshape %a : ({M48}) -> tensor<2x2x8xf32>",
        f"%1 = stablehlo.reshape %0 : (tensor<2x2x8xf32>) -> {M48}",
        f"%2 = stablehlo.transpose %1, dims = [1, 0] : ({M48}) -> tensor<8x4xf32>",
        f"%3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<8x4xf32>) -> {M48}",
        f"%r = stablehlo.tanh %3 : {M48}",
    ))  # fmt: skip
    after = eliminate_dead_code(simplify(before))
    assert opcode_names(after) == ["tanh"]
    assert after.operations[0].operands == after.parameters


def test_broadcast_of_a_unit_reshape_broadcasts_the_value_itself():
    before = module(function(
        f"%a: {V4}", M48, f"%0 = stablehlo.reshape %a : ({V4}) -> tensor<4x1xf32>",
        f"%r = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<4x1xf32>) -> {M48}",
    ))  # fmt: skip
    (broadcast,) = eliminate_dead_code(simplify(before)).operations
    assert broadcast.attributes["broadcast_dimensions"] == (0,)
    assert broadcast.operands == (0,)


def test_neutral_elements_vanish_and_constant_divisors_multiply():
    before = module(
        function(
            f"%a: {V4}",
            V4,
            f"%one = stablehlo.constant dense<1.0> : {V4}",
            f"%four = stablehlo.constant dense<4.0> : {V4}",
            f"%zero = stablehlo.constant dense<0.0> : {V4}",
            f"%0 = stablehlo.multiply %a, %one : {V4}",
            f"%1 = stablehlo.add %0, %zero : {V4}",
            f"%r = stablehlo.divide %1, %four : {V4}",
        )
    )
    after = eliminate_dead_code(simplify_algebra(before))
    assert opcode_names(after) == ["constant", "multiply"]
    assert after.operations[0].attributes["value"] == 0.25


@pytest.mark.parametrize("beside", [False, True])
def test_pieces_that_zeros_fill_up_side_by_side_become_one_whole(beside):
    """As the gradients of two slices are added up."""
    right, left, whole = tensor((4, 3)), tensor((4, 5)), tensor((4, 8))
    lines = [
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%p = stablehlo.pad %a, %z, low = [0, 5], high = [0, 0], interior = [0, 0]"
        f" : ({right}, tensor<f32>) -> {whole}",
        f"%q = stablehlo.pad %b, %z, low = [0, 0], high = [0, 3], interior = [0, 0]"
        f" : ({left}, tensor<f32>) -> {whole}",
    ]
    if beside:
        lines += [f"%s = stablehlo.add %x, %p : {whole}", f"%r = stablehlo.add %s, %q : {whole}"]
    else:
        lines += [f"%r = stablehlo.add %p, %q : {whole}"]
    text = function(f"%a: {right}, %b: {left}, %x: {whole}", whole, *lines)
    after = eliminate_dead_code(simplify_algebra(module(text)))
    assert opcode_names(after) == ["concatenate", "add"][: 1 + beside]
    assert after.operations[0].operands == (1, 0)


def test_pieces_that_overlap_are_added():
    half, whole = tensor((4, 5)), tensor((4, 8))
    pads = [
        f"%{name} = stablehlo.pad %{data}, %z, low = [0, {low}], high = [0, {3 - low}], interior = [0, 0]"
        f" : ({half}, tensor<f32>) -> {whole}"
        for name, data, low in (("p", "a", 3), ("q", "b", 0))
    ]
    text = function(
        f"%a: {half}, %b: {half}", whole, "%z = stablehlo.constant dense<0.0> : tensor<f32>", *pads,
        f"%r = stablehlo.add %p, %q : {whole}",
    )  # fmt: skip
    assert opcode_names(simplify_algebra(module(text))) == ["constant", "pad", "pad", "add"]


def test_powers_become_products_and_roots():
    before = module(
        function(
            f"%a: {V4}",
            V4,
            f"%two = stablehlo.constant dense<2.0> : {V4}",
            f"%half = stablehlo.constant dense<0.5> : {V4}",
            f"%0 = stablehlo.power %a, %two : {V4}",
            f"%r = stablehlo.power %0, %half : {V4}",
        )
    )
    assert opcode_names(eliminate_dead_code(simplify_algebra(before))) == ["multiply", "sqrt"]


def test_equal_operations_are_computed_once_but_random_ones_never():
    before = module(
        function(
            f"%a: {V4}",
            V4,
            f"%0 = stablehlo.tanh %a : {V4}",
            f"%1 = stablehlo.tanh %a : {V4}",
            f"%r = stablehlo.add %0, %1 : {V4}",
        )
    )
    after = eliminate_common_subexpressions(before)
    assert opcode_names(after) == ["tanh", "add"]
    assert len(set(after.operations[1].operands)) == 1


def test_what_stands_behind_a_barrier_is_computed_again():
    first, barrier = f"%0 = stablehlo.tanh %a : {V4}", f"%b = stablehlo.optimization_barrier %a : {V4}"
    again, total = f"%1 = stablehlo.tanh %b : {V4}", f"%r = stablehlo.add %0, %1 : {V4}"
    assert opcode_names(optimise(module(function(f"%a: {V4}", V4, first, barrier, again, total)))) == [
        "tanh", "tanh", "add",
    ]  # fmt: skip
    assert opcode_names(optimise(module(function(f"%a: {V4}", V4, f"%r = {barrier[5:]}")))) == []


def test_equal_sums_merge_and_a_maximum_stays():
    text = reduction("add", (4, 8), (1,))
    doubled = text.replace(
        "return %r : tensor<4xf32>",
        "%q = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] "
        ": (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
        "%p = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1] "
        ": (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
        "%s = stablehlo.add %q, %p : tensor<4xf32>\n%t = stablehlo.add %r, %s : tensor<4xf32>\n"
        "return %t : tensor<4xf32>",
    )
    assert opcode_names(eliminate_common_subexpressions(module(doubled))).count("reduce") == 2


def test_f64_intermediates_are_narrowed_and_results_are_not():
    before = module(function(
        f"%a: {V4}", "tensor<4xf64>", f"%0 = stablehlo.convert %a : ({V4}) -> tensor<4xf64>",
        "%1 = stablehlo.tanh %0 : tensor<4xf64>", "%r = stablehlo.negate %1 : tensor<4xf64>",
    ))  # fmt: skip
    after = simplify(narrow_types(before))
    assert opcode_names(after) == ["tanh", "negate"]
    assert after.values[after.operations[0].results[0]].type.dtype == "f32"
    assert after.values[after.results[0]].type.dtype == "f64"


def _gelu(location: str) -> str:
    return function(
        f"%a: {V4}",
        V4,
        f"%h = stablehlo.constant dense<0.5> : {V4}",
        f"%i = stablehlo.constant dense<0.70710678> : {V4}",
        f"%one = stablehlo.constant dense<1.0> : {V4}",
        f"%0 = stablehlo.multiply %a, %h : {V4} {location}",
        f"%1 = stablehlo.multiply %a, %i : {V4} {location}",
        f"%2 = stablehlo.tanh %1 : {V4} {location}",
        f"%3 = stablehlo.add %2, %one : {V4} {location}",
        f"%r = stablehlo.multiply %3, %0 : {V4} {location}",
    )


def test_a_cluster_with_the_name_of_an_activation_becomes_one():
    after = eliminate_dead_code(recognise_activations(module(_gelu('loc("fw:0")'), ("aten::gelu",))))
    assert opcode_names(after) == ["activation"]
    assert after.operations[0].attributes["function"] == "gelu"
    assert after.operations[0].framework == (0,)


def test_a_cluster_of_another_name_stays():
    after = recognise_activations(module(_gelu('loc("fw:0")'), ("aten::addcmul",)))
    assert "activation" not in opcode_names(after)


def test_erf_form_of_gelu_is_recognised_without_names():
    text = _gelu("").replace("stablehlo.tanh %1", "stablehlo.custom_erf %1")
    before = module(
        text.replace("stablehlo.custom_erf %1 : tensor<4xf32>", f'"chlo.erf"(%1) : ({V4}) -> {V4}')
    )
    assert opcode_names(eliminate_dead_code(recognise_activations(before))) == ["activation"]


def test_x_times_logistic_is_silu():
    before = module(function(f"%a: {V4}", V4, f"%0 = stablehlo.logistic %a : {V4}",
                             f"%r = stablehlo.multiply %0, %a : {V4}"))  # fmt: skip
    (silu,) = recognise_activations(before).operations
    assert silu.attributes["function"] == "silu"


def test_silu_stays_apart_when_its_gate_is_used_elsewhere():
    before = module(function(
        f"%a: {V4}", V4, f"%0 = stablehlo.logistic %a : {V4}", f"%1 = stablehlo.multiply %0, %a : {V4}",
        f"%r = stablehlo.add %0, %1 : {V4}",
    ))  # fmt: skip
    assert opcode_names(recognise_activations(before)) == ["logistic", "multiply", "add"]


def test_names_of_operators_lose_namespace_and_overload():
    assert base_name("aten::gelu.out") == "gelu"
    assert base_name("aten.silu.default") == "silu"


def test_mean_and_variance_become_moments():
    after = eliminate_dead_code(recognise_moments(module(layer_norm(4, 8))))
    assert opcode_names(after).count("moments") == 1
    assert "reduce" not in opcode_names(after)


def test_a_lone_mean_stays_a_sum():
    assert "moments" not in opcode_names(recognise_moments(module(reduction("add", (4, 8), (1,)))))


def test_the_pipeline_keeps_parameters_results_and_framework_rows():
    before = module(_gelu('loc("fw:0")'), ("aten::gelu",))
    after = optimise(before)
    assert after.parameters == before.parameters
    assert after.results == before.results
    assert all(operation.framework == (0,) for operation in after.operations)
