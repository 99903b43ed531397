# NumPy arithmetic on arrays of any type is typed as Any:
# mypy: disable-error-code="no-any-return"
"""The operators that instructions take: `nl.add`, `np.maximum`, `nl.exp`, ... and what they compute.

Arithmetic is fp32, as in the engines. An operator is found by the function that a kernel passes: ours,
NumPy's, or a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.errors import NkiValidationError

FP32_MINIMUM = float(np.finfo(np.float32).min)


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator.

    Attributes:
        name: As `nl` names it.
        function: fp32 arrays to an fp32 array (bitwise: integers to integers); `out=` where `has_out`.
        arity: Operands.
        bitwise: Works on bit patterns of integers.
        comparison: Gives 0 or 1.
        reduce: Reduction along axes, or None.
        accumulate: Running reduction along one axis, or None.
        identity: Start of a reduction.
        has_out: Whether `function` takes `out=`.
        table: Activation table that the Scalar engine needs, "" where none.
    """

    name: str
    function: Callable[..., Array]
    arity: int = 2
    bitwise: bool = False
    comparison: bool = False
    reduce: Callable[..., Array] | None = None
    accumulate: Callable[..., Array] | None = None
    identity: float = 0.0
    has_out: bool = False
    table: str = ""

    @property
    def is_activation(self) -> bool:
        """Whether only the Scalar engine has it, as a function of one operand."""
        return self.arity == 1 and bool(self.table) and self.name not in _ON_VECTOR


def _compared(function: Callable[..., Array]) -> Callable[..., Array]:
    def compute(x: Any, y: Any) -> Array:
        return function(x, y).astype(np.float32)

    return compute


@lru_cache(maxsize=1)
def _erf() -> Callable[..., Array]:
    """The error function over arrays; compiled on first use."""
    import math

    import numba

    @numba.vectorize(["float32(float32)"], cache=True)
    def erf(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # compiled for each type
        return math.erf(x)

    compiled: Callable[..., Array] = erf
    return compiled


def erf(x: Array) -> Array:
    """The error function, fp32."""
    return _erf()(x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), fp32, without overflow."""
    half = np.tanh(np.float32(0.5) * x)
    return np.float32(0.5) * half + np.float32(0.5)


def silu(x: Array) -> Array:
    """x * sigmoid(x)."""
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    """x * normal distribution function of x."""
    return np.float32(0.5) * x * (np.float32(1.0) + erf(x * np.float32(np.sqrt(0.5))))


def gelu_tanh(x: Array) -> Array:
    """Tanh approximation of gelu (Hendrycks and Gimpel 2016)."""
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1.0) + np.tanh(inner))


def gelu_sigmoid(x: Array) -> Array:
    """Sigmoid approximation of gelu (Hendrycks and Gimpel 2016)."""
    return x * sigmoid(np.float32(1.702) * x)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow."""
    return np.logaddexp(np.float32(0.0), x)


def _silu_dx(x: Array) -> Array:
    gate = sigmoid(x)
    return gate * (np.float32(1.0) + x * (np.float32(1.0) - gate))


def _gelu_dx(x: Array) -> Array:
    density = np.exp(np.float32(-0.5) * x * x) * np.float32(1 / np.sqrt(2 * np.pi))
    return np.float32(0.5) * (np.float32(1.0) + erf(x * np.float32(np.sqrt(0.5)))) + x * density


def _gelu_sigmoid_dx(x: Array) -> Array:
    gate = sigmoid(np.float32(1.702) * x)
    return gate + np.float32(1.702) * x * gate * (np.float32(1.0) - gate)


def _gelu_tanh_dx(x: Array) -> Array:
    scale = np.float32(np.sqrt(2 / np.pi))
    bent = np.tanh(scale * (x + np.float32(0.044715) * x * x * x))
    slope = scale * (np.float32(1.0) + np.float32(3 * 0.044715) * x * x)
    return np.float32(0.5) * (np.float32(1.0) + bent + x * (np.float32(1.0) - bent * bent) * slope)


def _tanh_dx(x: Array) -> Array:
    bent = np.tanh(x)
    return np.float32(1.0) - bent * bent


def _sigmoid_dx(x: Array) -> Array:
    gate = sigmoid(x)
    return gate * (np.float32(1.0) - gate)


def _rsqrt(x: Array) -> Array:
    return np.float32(1.0) / np.sqrt(x)


def _mod(x: Array, y: Array) -> Array:
    return np.mod(x, y)


_F = np.float32


def _with_slope(
    name: str,
    function: Callable[..., Array],
    slope: Callable[..., Array],
    *,
    table: str,
    has_out: bool = False,
) -> tuple[Operator, Operator]:
    """A function of one operand and its derivative, which share an activation table."""
    return (
        Operator(name, function, arity=1, has_out=has_out, table=table),
        Operator(f"{name}_dx", slope, arity=1, table=table),
    )


_OPERATORS = [
    Operator("add", np.add, reduce=np.add.reduce, accumulate=np.add.accumulate, has_out=True),
    Operator("subtract", np.subtract, reduce=np.subtract.reduce, accumulate=np.subtract.accumulate,
             has_out=True),
    Operator("multiply", np.multiply, reduce=np.multiply.reduce, accumulate=np.multiply.accumulate,
             identity=1.0, has_out=True),
    Operator("maximum", np.maximum, reduce=np.maximum.reduce, accumulate=np.maximum.accumulate,
             identity=-np.inf, has_out=True),
    Operator("minimum", np.minimum, reduce=np.minimum.reduce, accumulate=np.minimum.accumulate,
             identity=np.inf, has_out=True),
    Operator("divide", np.divide, has_out=True),
    Operator("power", np.power, has_out=True),
    Operator("mod", _mod),
    Operator("fmod", np.fmod),
    Operator("abs_max", lambda x, y: np.maximum(np.abs(x), np.abs(y)),
             reduce=lambda a, axis, **k: np.maximum.reduce(np.abs(a), axis=axis, **k)),
    Operator("abs_min", lambda x, y: np.minimum(np.abs(x), np.abs(y)),
             reduce=lambda a, axis, **k: np.minimum.reduce(np.abs(a), axis=axis, **k), identity=np.inf),
    Operator("average", np.add, reduce=np.mean),
    Operator("bypass", lambda x, y: x),
    Operator("equal", _compared(np.equal), comparison=True),
    Operator("not_equal", _compared(np.not_equal), comparison=True),
    Operator("greater", _compared(np.greater), comparison=True),
    Operator("greater_equal", _compared(np.greater_equal), comparison=True),
    Operator("less", _compared(np.less), comparison=True),
    Operator("less_equal", _compared(np.less_equal), comparison=True),
    Operator("logical_and", _compared(np.logical_and), comparison=True, reduce=np.logical_and.reduce,
             identity=1.0),
    Operator("logical_or", _compared(np.logical_or), comparison=True, reduce=np.logical_or.reduce),
    Operator("logical_xor", _compared(np.logical_xor), comparison=True, reduce=np.logical_xor.reduce),
    Operator("bitwise_and", np.bitwise_and, bitwise=True, reduce=np.bitwise_and.reduce, identity=-1),
    Operator("bitwise_or", np.bitwise_or, bitwise=True, reduce=np.bitwise_or.reduce),
    Operator("bitwise_xor", np.bitwise_xor, bitwise=True, reduce=np.bitwise_xor.reduce),
    Operator("left_shift", np.left_shift, bitwise=True),
    Operator("right_shift", np.right_shift, bitwise=True),
    Operator("invert", np.invert, arity=1, bitwise=True),
    Operator("logical_not", lambda x: np.logical_not(x).astype(np.float32), arity=1, comparison=True),
    Operator("copy", lambda x: x, arity=1),
    Operator("abs", np.abs, arity=1, table="abs"),
    Operator("negative", np.negative, arity=1),
    Operator("exp", np.exp, arity=1, has_out=True, table="exp"),
    Operator("log", np.log, arity=1, has_out=True, table="log"),
    Operator("sin", np.sin, arity=1, has_out=True, table="sin"),
    Operator("cos", np.cos, arity=1, has_out=True, table="sin"),
    Operator("tan", np.tan, arity=1, has_out=True, table="tan"),
    Operator("arctan", np.arctan, arity=1, has_out=True, table="arctan"),
    *_with_slope("tanh", np.tanh, _tanh_dx, table="tanh", has_out=True),
    *_with_slope("sigmoid", sigmoid, _sigmoid_dx, table="sigmoid"),
    *_with_slope("silu", silu, _silu_dx, table="silu"),
    *_with_slope("gelu", gelu, _gelu_dx, table="gelu"),
    *_with_slope("gelu_apprx_tanh", gelu_tanh, _gelu_tanh_dx, table="gelu"),
    *_with_slope("gelu_apprx_sigmoid", gelu_sigmoid, _gelu_sigmoid_dx, table="gelu"),
    *_with_slope("erf", erf, lambda x: np.exp(-x * x) * _F(2 / np.sqrt(np.pi)), table="erf"),
    Operator("relu", lambda x: np.maximum(x, _F(0.0)), arity=1),
    Operator("prelu", lambda x, y=0.0: np.where(x >= 0, x, x * _F(y)), arity=1),
    Operator("softplus", softplus, arity=1, table="softplus"),
    Operator("mish", lambda x: x * np.tanh(softplus(x)), arity=1, table="mish"),
    Operator("square", np.square, arity=1, has_out=True),
    Operator("sqrt", np.sqrt, arity=1, has_out=True, table="sqrt"),
    Operator("rsqrt", _rsqrt, arity=1, table="rsqrt"),
    Operator("reciprocal", lambda x: _F(1.0) / x, arity=1, table="reciprocal"),
    Operator("sign", np.sign, arity=1, has_out=True),
    Operator("ceil", np.ceil, arity=1, has_out=True),
    Operator("floor", np.floor, arity=1, has_out=True),
    Operator("trunc", np.trunc, arity=1, has_out=True),
]  # fmt: skip

BY_NAME: dict[str, Operator] = {operator.name: operator for operator in _OPERATORS}
_ALIASES = {
    "max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add", "prod":
    "multiply", "mult": "multiply", "mul": "multiply", "sub": "subtract", "true_divide": "divide",
    "pow": "power", "absolute": "abs", "identity": "copy", "all": "logical_and", "any": "logical_or",
    "mean": "average", "gelu_apprx_tanh_fwd": "gelu_apprx_tanh", "is_gt": "greater", "is_ge":
    "greater_equal", "is_lt": "less", "is_le": "less_equal", "is_equal": "equal", "remainder": "mod",
    "arithmetic_shift_right": "right_shift", "logical_shift_left": "left_shift", "logical_shift_right":
    "right_shift", "atan": "arctan",
}  # fmt: skip
BY_NAME.update({alias: BY_NAME[name] for alias, name in _ALIASES.items()})

_BY_FUNCTION: dict[Any, Operator] = {
    getattr(np, name): operator for name, operator in BY_NAME.items() if callable(getattr(np, name, None))
}


def register(function: Callable[..., Any], name: str) -> None:
    """Let `function` stand for the operator `name` in instruction calls."""
    _BY_FUNCTION[function] = BY_NAME[name]


def find_operator(given: Any) -> Operator:
    """The operator that a function, a NumPy function or a name stands for.

    Raises:
        NkiValidationError: The engines have no such operator.
    """
    try:
        return _BY_FUNCTION[given]
    except (KeyError, TypeError):
        pass
    name = given if isinstance(given, str) else getattr(given, "__name__", str(given))
    if isinstance(given, Operator):
        return given
    found = BY_NAME.get(name.rsplit(".", 1)[-1])
    if found is None:
        from neuron_tools.nki.tracer import where

        raise NkiValidationError(f"the engines have no operator {name!r}", where())
    return found


_ON_VECTOR = ("abs", "rsqrt", "reciprocal", "sqrt")
"""Functions of one operand with a table that the Vector engine computes too."""
