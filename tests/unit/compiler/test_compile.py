"""Whole compilations: what the Programs move, compute and hold."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.records.program import Memory, Opcode, Program, Purpose
from tests.unit.compiler.modules import (
    CORE,
    binary,
    compiled,
    computed,
    function,
    layer_norm,
    matmul,
    module,
    moved,
    multiply_accumulates,
    opcodes,
    reduction,
    softmax,
    tensor,
    unary,
)

ELEMENTWISE = ("ACTIVATE", "TENSOR_TENSOR", "TENSOR_SCALAR", "SCALAR_TENSOR_TENSOR", "TENSOR_COPY")
extents = st.integers(1, 700)


def assert_sound(program: Program) -> None:
    """Every row belongs to an HLO operation, shares sum to 1, and every operation has rows."""
    assert np.all(program.instructions["hlo"] >= 0)
    assert np.all(program.dmas["hlo"] >= 0)
    assert set(program.instructions["hlo"].tolist()) == set(range(len(program.hlo)))
    for operation in program.hlo:
        assert len(operation.framework) == len(operation.shares)
        assert not operation.shares or abs(sum(operation.shares) - 1) < 1e-9


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(extents, extents, st.sampled_from(["f32", "bf16"]))
def test_elementwise_loads_and_stores_each_byte_once(rows, columns, dtype):
    program = compiled(binary("add", tensor((rows, columns), dtype)))
    size = rows * columns * (4 if dtype == "f32" else 2)
    assert moved(program, Memory.HBM, Memory.SBUF) == 2 * size
    assert moved(program, Memory.SBUF, Memory.HBM) == size
    assert computed(program, *ELEMENTWISE) >= rows * columns
    assert_sound(program)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(extents, extents, extents, st.sampled_from(["f32", "bf16"]), st.booleans())
def test_a_matmul_multiplies_exactly_what_the_mathematics_asks(rows, depth, columns, dtype, turned):
    program = compiled(matmul(rows, depth, columns, dtype, turned=turned))
    assert multiply_accumulates(program) == rows * depth * columns
    assert sum(operation.model_flops for operation in program.hlo) == 2 * rows * depth * columns
    assert moved(program, Memory.SBUF, Memory.HBM) >= rows * columns * (4 if dtype == "f32" else 2)
    assert_sound(program)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.data(), st.sampled_from(["add", "maximum"]))
def test_any_reduction_reads_its_operand_once(shape, data, kind):
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1).map(sorted))
    program = compiled(reduction(kind, tuple(shape), axes))
    assert moved(program, Memory.HBM, Memory.SBUF) == 4 * int(np.prod(shape))
    kept = int(np.prod([extent for axis, extent in enumerate(shape) if axis not in axes]))
    assert moved(program, Memory.SBUF, Memory.HBM) == 4 * kept
    assert_sound(program)


@pytest.mark.parametrize("columns", [25_047, 30_000, 12_345])
def test_sums_over_rows_of_uneven_chunks_are_stored_once(columns):
    program = compiled(reduction("add", (33, columns), [0]))
    assert moved(program, Memory.SBUF, Memory.HBM) == 4 * columns
    assert_sound(program)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 3000), st.integers(2, 2000))
def test_softmax_reads_and_writes_once_and_covers_all_elements(rows, columns):
    program = compiled(softmax(rows, columns))
    assert moved(program, Memory.HBM, Memory.SBUF) == 4 * rows * columns
    assert moved(program, Memory.SBUF, Memory.HBM) == 4 * rows * columns
    assert computed(program, "ACTIVATE") >= rows * columns
    assert_sound(program)


def test_of_rows_too_long_for_sbuf_what_fits_is_read_once_and_the_rest_once_per_level():
    rows, columns = 4, 200_000
    program = compiled(softmax(rows, columns))
    size = 4 * rows * columns
    assert 2 * size < moved(program, Memory.HBM, Memory.SBUF) < 3 * size
    assert moved(program, Memory.SBUF, Memory.HBM) == 4 * rows * columns


def test_layer_norm_takes_its_statistics_in_one_pass():
    program = compiled(layer_norm(256, 1024))
    data, vectors = 256 * 1024 * 4, 2 * 128 * 1024 * 4
    assert moved(program, Memory.HBM, Memory.SBUF) == data + vectors
    assert "BN_AGGREGATE" in opcodes(program)
    assert "TENSOR_REDUCE" not in opcodes(program)


def test_an_activation_is_one_instruction_per_tile_and_its_table_is_loaded_once():
    program = compiled(unary("tanh", "tensor<4096x512xf32>"))
    codes = program.instructions["opcode"]
    assert int((codes == Opcode.ACT_TABLE_LOAD).sum()) == 1
    assert computed(program, "ACTIVATE") == 4096 * 512
    assert "tanh" in program.activations


def test_a_sum_over_rows_is_a_matmul_with_ones():
    program = compiled(reduction("add", (1024, 256), (0,)))
    assert multiply_accumulates(program) == 1024 * 256


def test_fused_intermediates_never_leave_the_chip():
    type_ = "tensor<512x512xf32>"
    text = function(
        f"%a: {type_}",
        type_,
        f"%0 = stablehlo.tanh %a : {type_}",
        f"%1 = stablehlo.abs %0 : {type_}",
        f"%r = stablehlo.add %1, %a : {type_}",
    )
    program = compiled(text)
    assert moved(program, Memory.HBM, Memory.SBUF) == 512 * 512 * 4
    assert not np.any(program.dmas["purpose"] == Purpose.INTERMEDIATE)


def test_weights_and_inputs_are_told_apart():
    read = module(matmul(64, 64, 64), parameter_kinds=("input", "weight"), parameter_names=("x", "w"))
    program = compile_module(read, CORE)
    purposes = {Purpose(int(p)) for p in program.dmas["purpose"]}
    assert {Purpose.INPUT, Purpose.WEIGHT, Purpose.OUTPUT} <= purposes
    assert [item.name for item in program.tensors[:2]] == ["x", "w"]


def test_unknown_operations_are_estimated_and_named_never_refused():
    type_ = "tensor<128x64xf32>"
    text = function(f"%a: {type_}", type_, f"%r = stablehlo.custom_call @secret(%a) : ({type_}) -> {type_}")
    program = compiled(text)
    assert "secret has no native lowering" in program.warnings[0]
    assert moved(program, Memory.HBM, Memory.SBUF) == 128 * 64 * 4


def test_a_loop_runs_its_body_as_often_as_its_counter_says():
    text = """
    func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%i = %c0, %x = %a) : tensor<i32>, tensor<64xf32>
       cond {
        %n = stablehlo.constant dense<5> : tensor<i32>
        %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
       } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %y = stablehlo.tanh %x : tensor<64xf32>
        stablehlo.return %j, %y : tensor<i32>, tensor<64xf32>
       }
      return %0#1 : tensor<64xf32>
    }"""
    program = compiled(text)
    functions = program.instructions["activation"][program.instructions["opcode"] == Opcode.ACTIVATE]
    assert len(functions) == 5
    assert not program.warnings


def test_a_loop_of_unknown_length_is_timed_once_and_says_so():
    text = """
    func.func @main(%a: tensor<64xf32>, %n: tensor<i32>) -> tensor<64xf32> {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%i = %c0, %x = %a) : tensor<i32>, tensor<64xf32>
       cond {
        %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
       } do {
        %y = stablehlo.tanh %x : tensor<64xf32>
        stablehlo.return %i, %y : tensor<i32>, tensor<64xf32>
       }
      return %0#1 : tensor<64xf32>
    }"""
    assert "trip count is not known" in compiled(text).warnings[0]


def test_a_look_up_moves_one_descriptor_per_row():
    table, indices, result = tensor((1000, 64)), "tensor<32xi64>", tensor((32, 64))
    text = function(
        f"%t: {table}, %i: {indices}",
        result,
        '%r = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        "indices_are_sorted = false, "
        f"slice_sizes = array<i64: 1, 64>}}> : ({table}, {indices}) -> {result}",
    )
    program = compiled(text)
    rows = program.dmas[program.dmas["descriptor_bytes"] == 256]
    assert int(rows["descriptors"].max()) == 32


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_transpose_moves_every_byte_in_and_out_once(dtype):
    source, result = tensor((300, 200), dtype), tensor((200, 300), dtype)
    program = compiled(
        function(
            f"%a: {source}", result, f"%r = stablehlo.transpose %a, dims = [1, 0] : ({source}) -> {result}"
        )
    )
    size = 300 * 200 * (4 if dtype == "f32" else 2)
    assert moved(program, Memory.HBM, Memory.SBUF) == size
    assert moved(program, Memory.SBUF, Memory.HBM) == size


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 4),
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(5, 24),
    st.sampled_from([1, 3]),
    st.integers(1, 2),
)
def test_a_convolution_multiplies_once_per_tap(images, inputs, outputs, size, kernel, stride):
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    image, weights = tensor((images, inputs, size, size)), tensor((outputs, inputs, kernel, kernel))
    result = tensor((images, outputs, out, out))
    program = compiled(function(
        f"%a: {image}, %b: {weights}", result,
        f"%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        f"window = {{stride = [{stride}, {stride}], pad = [[{pad}, {pad}], [{pad}, {pad}]]}} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        f": ({image}, {weights}) -> {result}",
    ))  # fmt: skip
    flops = 2 * images * outputs * out * out * inputs * kernel * kernel
    assert sum(operation.model_flops for operation in program.hlo) == flops
    assert 2 * multiply_accumulates(program) == flops
    assert_sound(program)


def test_empty_tensors_and_pass_through_results_compile_to_nothing():
    assert len(compiled(unary("tanh", "tensor<0x4xf32>")).instructions) == 0
    type_ = "tensor<4xf32>"
    program = compiled(f"func.func @main(%r: {type_}) -> {type_} {{ return %r : {type_} }}")
    assert len(program.instructions) == 0


def test_shares_follow_the_work_and_sum_to_one():
    type_ = "tensor<256x256xf32>"
    text = f"""func.func @main(%a: {type_}) -> {type_} {{
      %0 = stablehlo.tanh %a : {type_} loc("fw:0")
      %1 = stablehlo.abs %0 : {type_} loc("fw:1")
      return %1 : {type_} }}"""
    (operation,) = compiled(text, names=("aten::tanh", "aten::abs")).hlo
    assert operation.framework == (0, 1)
    assert operation.shares == (0.5, 0.5)


def test_the_same_module_gives_the_same_program():
    first, second = compiled(softmax(300, 500)), compiled(softmax(300, 500))
    assert np.array_equal(first.instructions, second.instructions)
    assert np.array_equal(first.dmas, second.dmas)
    assert np.array_equal(first.waits, second.waits)


@pytest.mark.parametrize("target", hardware.targets())
def test_every_target_can_be_compiled_for(target):
    core = hardware.get(target)
    program = compiled(matmul(300, 200, 600), core)
    assert program.target == target
    assert multiply_accumulates(program) == 300 * 200 * 600


def test_unfused_compilation_stores_every_intermediate():
    type_ = "tensor<64x64xf32>"
    text = function(
        f"%a: {type_}", type_, f"%0 = stablehlo.tanh %a : {type_}", f"%r = stablehlo.abs %0 : {type_}"
    )
    program = compiled(text, options=CompilerOptions(fuse=False))
    assert len(program.hlo) == 2
    assert moved(program, Memory.SBUF, Memory.HBM) == 2 * 64 * 64 * 4


def test_a_softmax_over_attention_scores_never_stores_the_scores():
    query, key, scores = tensor((256, 64), "bf16"), tensor((1024, 64), "bf16"), tensor((256, 1024), "bf16")
    row, scalar = tensor((256,), "bf16"), "tensor<bf16>"
    text = function(
        f"%q: {query}, %k: {key}", scores,
        f"%low = stablehlo.constant dense<-1.0e+30> : {scalar}",
        f"%zero = stablehlo.constant dense<0.0> : {scalar}",
        f"%s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : ({query}, {key}) -> {scores}",
        f"%m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] "
        f": ({scores}, {scalar}) -> {row}",
        f"%mb = stablehlo.broadcast_in_dim %m, dims = [0] : ({row}) -> {scores}",
        f"%d = stablehlo.subtract %s, %mb : {scores}",
        f"%e = stablehlo.exponential %d : {scores}",
        f"%t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] "
        f": ({scores}, {scalar}) -> {row}",
        f"%tb = stablehlo.broadcast_in_dim %t, dims = [0] : ({row}) -> {scores}",
        f"%r = stablehlo.divide %e, %tb : {scores}",
    )  # fmt: skip
    program = compiled(text)
    assert len(program.hlo) == 1
    assert moved(program, Memory.SBUF, Memory.HBM) == 256 * 1024 * 2
    assert moved(program, Memory.HBM, Memory.SBUF) == (256 + 1024) * 64 * 2
    assert multiply_accumulates(program) == 256 * 64 * 1024
    assert_sound(program)


def test_the_same_value_stored_in_two_types_is_written_twice():
    narrow, wide = "tensor<64x64xbf16>", "tensor<64x64xf32>"
    text = f"""func.func @main(%a: {narrow}, %b: {narrow}) -> ({narrow}, {wide}) {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({narrow}, {narrow}) -> {narrow}
      %1 = stablehlo.convert %0 : ({narrow}) -> {wide}
      return %0, %1 : {narrow}, {wide} }}"""
    assert moved(compiled(text), Memory.SBUF, Memory.HBM) == 64 * 64 * (2 + 4)


def test_a_narrow_operand_of_wide_arithmetic_is_loaded_narrow():
    narrow, wide = "tensor<256x256xbf16>", "tensor<256x256xf32>"
    text = function(f"%a: {narrow}", wide, f"%0 = stablehlo.convert %a : ({narrow}) -> {wide}",
                    f"%r = stablehlo.tanh %0 : {wide}")  # fmt: skip
    program = compiled(text)
    assert moved(program, Memory.HBM, Memory.SBUF) == 256 * 256 * 2
    assert moved(program, Memory.SBUF, Memory.HBM) == 256 * 256 * 4


def test_a_concatenation_that_only_products_read_is_not_copied():
    cached, new, both = tensor((96, 64), "bf16"), tensor((32, 64), "bf16"), tensor((128, 64), "bf16")
    text = function(
        f"%c: {cached}, %n: {new}, %q: {both}",
        tensor((128, 128), "bf16"),
        f"%k = stablehlo.concatenate %c, %n, dim = 0 : ({cached}, {new}) -> {both}",
        "%r = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] "
        f": ({both}, {both}) -> {tensor((128, 128), 'bf16')}",
    )
    program = compiled(text)
    assert moved(program, Memory.HBM, Memory.HBM) == 0
    assert moved(program, Memory.HBM, Memory.SBUF) == 2 * 128 * 64 * 2


def test_an_operand_used_once_is_streamed_through_little_memory():
    program = compiled(matmul(1, 4096, 4096))
    used = program.tiles["address"].astype(int) + program.tiles["bytes_per_partition"]
    assert used[program.tiles["memory"] == Memory.SBUF].max() < CORE.sbuf_bytes_per_partition / 2
    assert multiply_accumulates(program) == 4096 * 4096


def test_a_sum_of_squares_is_one_accumulating_activation():
    body = function(
        f"%a: {tensor((512, 2048), 'bf16')}",
        tensor((512,), "f32"),
        f"%zero = stablehlo.constant dense<0.0> : {tensor(())}",
        f"%w = stablehlo.convert %a : ({tensor((512, 2048), 'bf16')}) -> {tensor((512, 2048))}",
        f"%q = stablehlo.multiply %w, %w : {tensor((512, 2048))}",
        f"%r = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1] "
        f": ({tensor((512, 2048))}, {tensor(())}) -> {tensor((512,))}",
    )
    program = compiled(body)
    assert set(opcodes(program)) - {"ACT_TABLE_LOAD"} == {"DMA_TRIGGER", "ACTIVATE"}
