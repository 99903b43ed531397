"""Two cores share a module: together they compute what one does, in about half of the time."""

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings

from neuron_tools import hardware
from neuron_tools.compiler.compile import compile_logical, compile_module
from neuron_tools.compiler.opcodes import EXCHANGE
from neuron_tools.compiler.passes.pipeline import optimise, plain_form
from neuron_tools.compiler.split.split import split_module
from neuron_tools.compiler.split.strategy import WHOLE
from neuron_tools.records.program import Flag, Memory, TensorKind
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import function, matmul, module, tensor
from tests.unit.compiler.operators import lowered
from tests.unit.compiler.split import interpreter
from tests.unit.compiler.test_random_modules import modules

TWO, ONE = hardware.get("trn2", lnc=2), hardware.get("trn2", lnc=1)


def attention(tokens=256, width=512, heads=4):
    """Queries and keys of one projection, causal scores by head, and what they give to another one."""
    size = width // heads
    states, weight = tensor((tokens, width)), tensor((width, width))
    split, turned = tensor((tokens, heads, size)), tensor((heads, tokens, size))
    scores, row = tensor((heads, tokens, tokens)), tensor((heads, tokens))
    square, mask = tensor((tokens, tokens), "i32"), tensor((heads, tokens, tokens), "i1")
    seen = tensor((tokens, tokens), "i1")

    def heads_of(name, source):
        return [
            f"%{name}0 = stablehlo.dot_general %x, %{source}, contracting_dims = [1] x [0] "
            f": ({states}, {weight}) -> {states}",
            f"%{name}1 = stablehlo.reshape %{name}0 : ({states}) -> {split}",
            f"%{name} = stablehlo.transpose %{name}1, dims = [1, 0, 2] : ({split}) -> {turned}",
        ]

    return function(
        f"%x: {states}, %wq: {weight}, %wk: {weight}, %wo: {weight}",
        states,
        *heads_of("q", "wq"),
        *heads_of("k", "wk"),
        f"%s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
        f": ({turned}, {turned}) -> {scores}",
        f"%rows = stablehlo.iota dim = 0 : {square}",
        f"%columns = stablehlo.iota dim = 1 : {square}",
        f"%seen = stablehlo.compare GE, %rows, %columns : ({square}, {square}) -> {seen}",
        f"%mask = stablehlo.broadcast_in_dim %seen, dims = [1, 2] : ({seen}) -> {mask}",
        "%none = stablehlo.constant dense<-1.0e9> : tensor<f32>",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%hidden = stablehlo.broadcast_in_dim %none, dims = [] : (tensor<f32>) -> {scores}",
        f"%causal = stablehlo.select %mask, %s, %hidden : {mask}, {scores}",
        f"%e = stablehlo.exponential %causal : {scores}",
        "%sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] "
        f": ({scores}, tensor<f32>) -> {row}",
        f"%wide = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : ({row}) -> {scores}",
        f"%p = stablehlo.divide %e, %wide : {scores}",
        f"%o = stablehlo.dot_general %p, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
        f": ({scores}, {turned}) -> {turned}",
        f"%back = stablehlo.transpose %o, dims = [1, 0, 2] : ({turned}) -> {split}",
        f"%flat = stablehlo.reshape %back : ({split}) -> {states}",
        f"%y = stablehlo.dot_general %flat, %wo, contracting_dims = [1] x [0] "
        f": ({states}, {weight}) -> {states}",
        f"%r = stablehlo.add %x, %y : {states}",
    )


def check_values(text):
    """Both cores' results put together are those of the whole."""
    whole = plain_form(module(text))
    random = np.random.default_rng(5)
    arguments = [random.standard_normal(whole.values[value].type.shape) * 0.1 for value in whole.parameters]
    parts = split_module(whole, TWO)
    with np.errstate(all="ignore"):
        expected = interpreter.run(whole, arguments)
        found = interpreter.run_cores(parts, arguments)
    for number, value in enumerate(expected):
        halves = [results[number] for results in found]
        axis = interpreter.axis_of(value.shape, halves[0].shape)
        if axis == WHOLE:
            np.testing.assert_allclose(halves[0], halves[1], rtol=1e-9, equal_nan=True)
        np.testing.assert_allclose(interpreter.joined(halves, axis), value, rtol=1e-9, equal_nan=True)
    return parts


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_two_cores_compute_what_one_does(text):
    check_values(text)


def test_causal_attention_on_two_cores_computes_what_one_does():
    check_values(attention())


def test_partial_sums_of_both_cores_are_added():
    """The summed axis is the only one that has halves."""
    parts = check_values(matmul(3, 1 << 20, 1, "f32"))
    opcodes = [operation.opcode for operation in parts[0].module.operations]
    assert opcodes == ["dot_general", EXCHANGE, "add"]


def test_both_do_what_is_not_worth_an_exchange():
    (part,) = check_values(matmul(3, 256, 1, "f32"))
    assert [operation.opcode for operation in part.module.operations] == ["dot_general"]


def test_a_product_takes_little_more_than_half_of_the_time():
    whole = module(matmul(4096, 4096, 4096))
    one, two = compile_module(whole, ONE), compile_logical(whole, TWO)
    assert simulate(one, ONE).duration_ps / simulate(two, TWO).duration_ps >= 1.85
    given = [each.shape for each in two.tensors if each.kind is not TensorKind.INTERMEDIATE]
    assert given == [(4096, 4096)] * 3


def test_cores_meet_as_often_as_each_other():
    program = compile_logical(module(matmul(3, 1 << 20, 1, "f32")), TWO)
    tables = [each.instructions for each in program.of_cores]
    waits = [(table["flags"] & Flag.CORE_BARRIER != 0) & (table["dma"] < 0) for table in tables]
    assert [int(wait.sum()) for wait in waits] == [1, 1]
    times = simulate(program, TWO)
    starts = [each.start_ps[wait] for each, wait in zip(times.of_cores, waits)]
    told = [each.dma_end_ps.max() for each in times.of_cores]
    assert min(starts) > 0
    assert times.duration_ps >= max(told)


def test_one_core_runs_the_plain_program():
    whole = module(matmul(256, 256, 256))
    assert compile_logical(whole, ONE).physical_cores == 1


def test_sums_over_rows_do_not_ask_for_columns_of_what_is_made_by_rows():
    data, column = (torch.empty(size, device="meta") for size in ((2048, 768), (768,)))
    moment = torch.empty(2048, 1, device="meta")
    backward = torch.ops.aten.native_layer_norm_backward.default
    made = lowered(backward, data, data, [768], moment, moment, column, column, [True] * 3)
    program = compile_logical(made, TWO)
    moved = program.dmas["bytes"][program.dmas["source_memory"] == Memory.HBM].sum()
    assert moved < 1.1 * 2 * data.nbytes / 2  # of gradient and data a half for each core


def test_what_stands_behind_a_barrier_is_shared_and_computed_again():
    wide = tensor((4096, 512))
    text = function(
        f"%a: {wide}, %c: {wide}", wide, f"%0 = stablehlo.tanh %a : {wide}",
        f"%b:2 = stablehlo.optimization_barrier %a, %c : {wide}, {wide}",
        f"%1 = stablehlo.tanh %b#0 : {wide}", f"%2 = stablehlo.multiply %1, %b#1 : {wide}",
        f"%r = stablehlo.add %0, %2 : {wide}",
    )  # fmt: skip
    for part in split_module(module(text), TWO):
        assert sorted(each.opcode for each in optimise(part.module).operations) == [
            "add", "multiply", "tanh", "tanh",
        ]  # fmt: skip
        assert {part.module.shape_of(result) for result in part.module.results} == {(2048, 512)}
