from __future__ import annotations

import math

import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from tests.unit.nki.kernels import floats, run, tile

X = floats(128, 32)
POSITIVE = floats(128, 32, low=0.1, high=4.0)
ERF = np.vectorize(math.erf)
PHI = 0.5 * (1 + ERF(X / math.sqrt(2)))
DENSITY = np.exp(-X * X / 2) / math.sqrt(2 * math.pi)
GATE = 1 / (1 + np.exp(-X))
GATE17 = 1 / (1 + np.exp(-1.702 * X))
BENT = np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))

FUNCTIONS = {
    nl.exp: np.exp(X),
    nl.tanh: np.tanh(X),
    nl.sigmoid: GATE,
    nl.silu: X * GATE,
    nl.relu: np.maximum(X, 0),
    nl.silu_dx: GATE * (1 + X * (1 - GATE)),
    nl.gelu: X * PHI,
    nl.gelu_dx: PHI + X * DENSITY,
    nl.gelu_apprx_tanh: 0.5 * X * (1 + BENT),
    nl.gelu_apprx_sigmoid: X * GATE17,
    nl.gelu_apprx_sigmoid_dx: GATE17 + 1.702 * X * GATE17 * (1 - GATE17),
    nl.sin: np.sin(X),
    nl.cos: np.cos(X),
    nl.tan: np.tan(X),
    nl.arctan: np.arctan(X),
    nl.erf: ERF(X),
    nl.square: X * X,
    nl.abs: np.abs(X),
    nl.erf_dx: 2 / math.sqrt(math.pi) * np.exp(-X * X),
    nl.softplus: np.log1p(np.exp(X)),
    nl.mish: X * np.tanh(np.log1p(np.exp(X))),
    nl.sign: np.sign(X),
    nl.ceil: np.ceil(X),
    nl.floor: np.floor(X),
    nl.trunc: np.trunc(X),
    nl.copy: X,
    np.exp: np.exp(X),
    np.tanh: np.tanh(X),
}
ON_POSITIVE = {
    nl.log: np.log(POSITIVE),
    nl.sqrt: np.sqrt(POSITIVE),
    nl.rsqrt: 1 / np.sqrt(POSITIVE),
    nl.reciprocal: 1 / POSITIVE,
}


def activate(op):
    def body(a):
        result = tile((128, 32))
        nisa.activation(dst=result, op=op, data=a)
        return result

    return body


@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.__name__)
def test_activation_functions(op):
    np.testing.assert_allclose(run(activate(op), X), FUNCTIONS[op], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("op", ON_POSITIVE, ids=lambda op: op.__name__)
def test_activation_functions_of_positive_numbers(op):
    np.testing.assert_allclose(run(activate(op), POSITIVE), ON_POSITIVE[op], rtol=1e-5, atol=1e-6)


def test_scale_and_bias_may_be_numbers_or_columns():
    scale, bias = floats(128, 1, seed=1), floats(128, 1, seed=2)

    def body(a, scale, bias):
        first, second = tile((128, 32)), tile((128, 32))
        nisa.activation(first, nl.exp, a, bias=bias, scale=scale)
        nisa.activation(second, nl.exp, a, bias=0.5, scale=2.0)
        return first, second

    first, second = run(body, X, scale, bias)
    np.testing.assert_allclose(first, np.exp(X * scale + bias), rtol=1e-5)
    np.testing.assert_allclose(second, np.exp(X * 2 + 0.5), rtol=1e-5)


def test_the_operand_is_not_changed_by_scale_and_bias():
    def body(a):
        result = tile((128, 32))
        nisa.activation(result, nl.copy, a, bias=1.0)
        return a

    np.testing.assert_array_equal(run(body, X), X)


def test_activation_accumulates_in_registers_over_calls():
    cmd = nisa.reduce_cmd

    def body(a):
        result, total = tile((128, 32)), tile((128, 1))
        nisa.activation(result, nl.exp, a, reduce_op=nl.add, reduce_cmd=cmd.reset_reduce)
        nisa.activation(result, nl.exp, a, reduce_op=nl.add, reduce_cmd=cmd.reduce, reduce_res=total)
        return total

    np.testing.assert_allclose(run(body, X), 2 * np.exp(X).sum(axis=1, keepdims=True), rtol=1e-5)


def test_activation_reduce_gives_the_sum_of_its_result():
    def body(a):
        result, total = tile((128, 32)), tile((128, 1))
        nisa.activation_reduce(result, op=nl.square, data=a, reduce_op=nl.add, reduce_res=total, scale=2.0)
        return result, total

    result, total = run(body, X)
    np.testing.assert_allclose(result, (2 * X) ** 2, rtol=1e-6)
    np.testing.assert_allclose(total, ((2 * X) ** 2).sum(axis=1, keepdims=True), rtol=1e-5)


def test_activate2_applies_two_operators_first():
    def body(a):
        result, top = tile((128, 32)), tile((128, 1))
        nisa.activate2(
            result,
            op=nl.gelu,
            data=a,
            imm0=2.0,
            imm1=0.5,
            op0=nl.multiply,
            op1=nl.subtract,
            reduce_op=nl.maximum,
            reduce_res=top,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        return result, top

    inner = 2 * X - 0.5
    expected = inner * 0.5 * (1 + ERF(inner / math.sqrt(2)))
    result, top = run(body, X, target="trn3")
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(top, expected.max(axis=1, keepdims=True), rtol=2e-5)


def test_prelu_has_a_slope_for_negative_numbers():
    def body(a):
        result = tile((128, 32))
        nisa.activate2(result, nl.prelu, a, 1.0, 0.0, nl.bypass, nl.bypass, relu_param=0.25)
        return result

    np.testing.assert_allclose(run(body, X, target="trn3"), np.where(X >= 0, X, 0.25 * X), rtol=1e-6)
