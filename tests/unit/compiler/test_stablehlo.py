import pytest

from neuron_tools.compiler import hlo
from neuron_tools.compiler.stablehlo import StableHloError, inherit_framework, read_module
from tests.unit.compiler.modules import binary, function, mlir, module, opcode_names, unary


def test_types_operands_and_results_are_read():
    read = module(binary("add", "tensor<4x8xbf16>"))
    assert read.name == "main"
    assert [str(read.values[value].type) for value in read.parameters] == ["bf16[4,8]", "bf16[4,8]"]
    assert read.operations[0].operands == read.parameters
    assert read.results == read.operations[0].results


def test_scalars_have_an_empty_shape():
    read = module(unary("tanh", "tensor<f32>"))
    assert read.values[0].type == hlo.TensorType((), "f32")


def test_dimension_numbers_become_dicts():
    text = function(
        "%a: tensor<2x4x8xf32>, %b: tensor<2x8x3xf32>",
        "tensor<2x4x3xf32>",
        "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
        ": (tensor<2x4x8xf32>, tensor<2x8x3xf32>) -> tensor<2x4x3xf32>",
    )
    assert module(text).operations[0].attributes["dot_dimension_numbers"] == {
        "lhs_batching_dimensions": (0,),
        "rhs_batching_dimensions": (0,),
        "lhs_contracting_dimensions": (2,),
        "rhs_contracting_dimensions": (1,),
    }


def test_a_product_without_dimension_numbers_contracts_the_last_axis_with_the_first():
    text = function(
        "%a: tensor<4x8xf32>, %b: tensor<8x3xf32>",
        "tensor<4x3xf32>",
        "%r = stablehlo.dot %a, %b : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>",
    )
    (product,) = module(text).operations
    assert product.opcode == "dot_general"
    assert product.attributes["dot_dimension_numbers"] == {
        "lhs_contracting_dimensions": (1,),
        "rhs_contracting_dimensions": (0,),
    }


def test_the_number_of_a_core_is_a_constant_of_no_known_value():
    (number,) = module(function("", "tensor<ui32>", "%r = stablehlo.partition_id : tensor<ui32>")).operations
    assert number.opcode == "constant"
    assert "value" not in number.attributes


def test_elements_of_a_tuple_are_results_of_what_makes_it():
    text = function(
        "%a: tensor<4xf32>",
        "tensor<2xcomplex<f32>>",
        "%t = stablehlo.custom_call @pair(%a) "
        ": (tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<2xcomplex<f32>>>\n"
        "%r = stablehlo.get_tuple_element %t[1] "
        ": (tuple<tensor<4xf32>, tensor<2xcomplex<f32>>>) -> tensor<2xcomplex<f32>>",
    )
    read = module(text)
    (call,) = read.operations
    assert [read.values[value].type.shape for value in call.results] == [(4,), (2,)]
    assert read.results == call.results[1:]


def test_a_complex_constant_is_read_without_its_value():
    constant = "%r = stablehlo.constant dense<(0.0, 1.0)> : tensor<2xcomplex<f32>>"
    (operation,) = module(function("", "tensor<2xcomplex<f32>>", constant)).operations
    assert operation.attributes == {"value": None}


def test_convolution_layout_names_the_dimensions():
    text = function(
        "%a: tensor<1x3x8x8xf32>, %b: tensor<6x3x3x3xf32>",
        "tensor<1x6x8x8xf32>",
        "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
        "feature_group_count = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x8x8xf32>",
    )
    attributes = module(text).operations[0].attributes
    assert attributes["dimension_numbers"]["kernel"] == ("o", "i", "0", "1")
    assert attributes["feature_group_count"] == 1
    assert attributes["padding"] == (1, 1, 1, 1)


def test_enumerations_become_names():
    text = function(
        "%a: tensor<4xf32>", "tensor<4xi1>",
        "%r = stablehlo.compare GT, %a, %a, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
    )  # fmt: skip
    assert module(text).operations[0].attributes["comparison_direction"] == "GT"


@pytest.mark.parametrize(
    ("literal", "type_", "expected"),
    [
        ("2.5", "tensor<1024x1024xf32>", 2.5),
        ("true", "tensor<8xi1>", True),
        ("[1, 2, 3]", "tensor<3xi64>", (1, 2, 3)),
        ("0xFF800000", "tensor<f32>", float("-inf")),
    ],
)
def test_small_and_splat_constants_keep_their_value(literal, type_, expected):
    text = function("", type_, f"%r = stablehlo.constant dense<{literal}> : {type_}")
    assert module(text).operations[0].attributes["value"] == expected


def test_large_constants_keep_their_shape_only():
    numbers = ", ".join(str(i) for i in range(100))
    type_ = "tensor<100xi32>"
    text = function("", type_, f"%r = stablehlo.constant dense<[{numbers}]> : {type_}")
    assert module(text).operations[0].attributes["value"] is None


def test_the_ranks_of_a_large_job_are_kept_whole():
    ring = [(rank, (rank + 1) % 128) for rank in range(128)]
    pairs = f"dense<{[list(pair) for pair in ring]}> : tensor<128x2xi64>"
    text = function(
        "%a: tensor<4xf32>", "tensor<4xf32>",
        f'%r = "stablehlo.collective_permute"(%a) <{{source_target_pairs = {pairs}}}>'
        " : (tensor<4xf32>) -> tensor<4xf32>",
    )  # fmt: skip
    named = module(text).operations[0].attributes["source_target_pairs"]
    assert named == tuple(rank for pair in ring for rank in pair)


def test_regions_are_read_with_their_own_parameters():
    text = function(
        "%a: tensor<4x8xf32>",
        "tensor<4xf32>",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] "
        ": (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>",
    )
    reduce = module(text).operations[1]
    (region,) = reduce.regions
    assert [inner.opcode for inner in region.operations] == ["add"]
    assert region.operations[0].operands == region.parameters


def test_calls_are_expanded_in_place():
    text = """
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.tanh %0 : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.add %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    read = module(text)
    assert opcode_names(read) == ["add", "tanh"]
    assert read.operations[1].operands == read.operations[0].results


def test_locations_name_framework_rows_also_when_fused():
    text = """
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.tanh %a : tensor<4xf32> loc("fw:1")
      %1 = stablehlo.abs %0 : tensor<4xf32> loc(fused["fw:0", "fw:2"])
      %2 = stablehlo.negate %1 : tensor<4xf32> loc(callsite("fw:2" at "model.py":3:1))
      return %2 : tensor<4xf32>
    }"""
    read = module(text, ("aten::abs", "aten::tanh", "aten::neg"))
    assert [operation.framework for operation in read.operations] == [(1,), (0, 2), (2,)]


def test_operations_without_location_inherit_from_users_then_producers():
    constant = hlo.Operation("constant", (), (1,))
    user = hlo.Operation("add", (0, 1), (2,), framework=(3,))
    after = hlo.Operation("reshape", (2,), (4,))
    completed = inherit_framework([constant, user, after], 4)
    assert [operation.framework for operation in completed] == [(3,), (3,), (3,)]


def test_without_framework_rows_nothing_is_inherited():
    assert inherit_framework([hlo.Operation("constant", (), (0,))], 0)[0].framework == ()


def test_a_dynamic_extent_is_refused_with_a_sentence():
    with pytest.raises(StableHloError, match="fixed size"):
        module(unary("tanh", "tensor<?x4xf32>"))


def test_donated_arguments_are_aliases():
    text = function("%a: tensor<4xf32>, %b: tensor<4xf32>", "tensor<4xf32>",
                    "%r = stablehlo.add %a, %b : tensor<4xf32>")  # fmt: skip
    donated = text.replace("%b: tensor<4xf32>", "%b: tensor<4xf32> {tf.aliasing_output = 0 : i32}")
    assert module(donated).aliases == ((0, 1),)
    assert module(text).aliases == ()
    said_of_all = (
        'module attributes {mhlo.input_output_alias = [{alias = {kind = "may_alias", parameter_index = '
        "array<i64>, parameter_number = 1 : i64}, output_index = array<i64>}]} {" + text + "}"
    )
    assert module(said_of_all).aliases == ((0, 1),)


def test_a_module_without_functions_is_refused():
    with pytest.raises(StableHloError, match="no function"):
        read_module(mlir(""))


def test_jax_modules_read_like_torch_ones():
    jax = pytest.importorskip("jax")
    lowered = jax.jit(lambda x: jax.nn.softmax(x)).lower(jax.numpy.ones((4, 8), "float32"))
    read = read_module(lowered.compiler_ir("stablehlo"))
    assert "exponential" in opcode_names(read)
    assert [str(read.values[value].type) for value in read.results] == ["f32[4,8]"]
