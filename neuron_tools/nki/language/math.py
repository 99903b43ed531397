"""Elementwise language functions and matmul. As arguments of instructions the same names are operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuron_tools.nki import dtypes, operators
from neuron_tools.nki.dtypes import DType, as_dtype, promote
from neuron_tools.nki.isa import scalar
from neuron_tools.nki.isa.copies import memset, tensor_copy, tensor_copy_predicated
from neuron_tools.nki.isa.elementwise import reciprocal as reciprocal_instruction, tensor_tensor
from neuron_tools.nki.isa.issue import ready, refuse
from neuron_tools.nki.isa.matmul import nc_matmul, nc_transpose
from neuron_tools.nki.isa.random_numbers import dropout as dropout_instruction
from neuron_tools.nki.isa.tensor_scalar import tensor_scalar
from neuron_tools.nki.language.creation import ndarray
from neuron_tools.nki.language.movement import assign, copy, in_sbuf
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.operators import Operator
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tensor import NkiTensor

_ON_SCALAR = {
    operator.name for operator in operators.BY_NAME.values() if operator.arity == 1 and not operator.bitwise
} - {"negative", "reciprocal", "copy", "logical_not"}


def _number(value: Any) -> Any:
    return value.read() if isinstance(value, VirtualRegister) else value


def binary(op: Operator, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """x op y with NumPy's broadcasting; numbers alone give a number.

    Raises:
        NkiValidationError: The shapes do not broadcast.
    """
    x, y = _number(x), _number(y)
    first, second = isinstance(x, NkiTensor), isinstance(y, NkiTensor)
    if not first and not second:
        return op.function(x, y)
    if first and second:
        return _two_tiles(op, x, y, dtype, mask)
    tile, other, swapped = (x, y, False) if first else (y, x, True)
    kind = _result_type(op, tile.dtype, None, dtype)
    left = Restriction(tile.shape, mask)

    def emit(target: NkiTensor) -> None:
        left.run(target, lambda part: tensor_scalar(
            part, left.part(tile), op, other, reverse0=swapped))  # fmt: skip

    return result(tile.shape, kind, emit)


def _result_type(op: Operator, first: DType, second: DType | None, dtype: Any) -> DType:
    if dtype is not None:
        return as_dtype(dtype)
    if op.comparison:
        return dtypes.bool_
    kind = first if second is None else promote(first, second)
    if op.name == "divide" and not kind.is_float:
        return dtypes.float32
    return kind


def _two_tiles(op: Operator, x: NkiTensor, y: NkiTensor, dtype: Any, mask: Any) -> NkiTensor:
    x, y = _as_column(x, y), _as_column(y, x)
    try:
        shape = tuple(np.broadcast_shapes(x.shape, y.shape))
    except ValueError:
        if x.size != y.size:
            raise refuse(f"shapes {x.shape} and {y.shape} do not broadcast") from None
        shape = x.shape
    kind = _result_type(op, x.dtype, y.dtype, dtype)
    left = Restriction(shape, mask)

    def emit(target: NkiTensor) -> None:
        left.run(target, lambda part: combine_tiles(part, op, left.part(x), left.part(y)))

    return result(shape, kind, emit)


def _as_column(tile: NkiTensor, other: NkiTensor) -> NkiTensor:
    """One element per partition beside a tile with free dimensions: a column, not a row."""
    if tile.ndim == 1 and other.ndim > 1 and tile.shape[0] == other.shape[0] and tile.buffer.is_on_chip:
        return tile.reshape((tile.shape[0],) + (1,) * (other.ndim - 1))
    return tile


def _is_column(tile: NkiTensor, other: NkiTensor) -> bool:
    return tile.shape[0] == other.shape[0] and tile.size == tile.shape[0] and other.size > tile.size


def combine_tiles(target: NkiTensor, op: Operator, x: NkiTensor, y: NkiTensor) -> None:
    """Emit x op y into the target, as `tensor_scalar` where one has one element per partition."""
    if _is_column(y, x) and not op.bitwise:
        tensor_scalar(target, x, op, y)
        return
    if _is_column(x, y) and not op.bitwise:
        tensor_scalar(target, y, op, x, reverse0=True)
        return
    if x.buffer is MemoryRegion.psum and y.buffer is MemoryRegion.psum:
        y = in_sbuf(y)
    if x.shape != target.shape and x.size != target.size:
        x = x.broadcast_to(target.shape)
    if y.shape != target.shape and y.size != target.size:
        y = y.broadcast_to(target.shape)
    tensor_tensor(target, x, y, op)


def unary(op: Operator, x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """op(x): an activation on the Scalar engine where it is one, else on the Vector engine."""
    x = _number(x)
    if not isinstance(x, NkiTensor):
        return op.function(x)
    kind = as_dtype(dtype) if dtype is not None else (dtypes.bool_ if op.comparison else x.dtype)
    left = Restriction(x.shape, mask)

    def emit(target: NkiTensor) -> None:
        left.run(target, lambda part: _emit_unary(part, op, left.part(x)))

    return result(x.shape, kind, emit)


def _emit_unary(target: NkiTensor, op: Operator, x: NkiTensor) -> None:
    if op.name == "reciprocal":
        reciprocal_instruction(target, x)
    elif op.name == "negative":
        tensor_scalar(target, x, "multiply", -1.0)
    elif op.name in _ON_SCALAR:
        scalar.activation(target, op, x)
    else:
        tensor_scalar(target, x, op, None if not op.bitwise else 0)


def _binary_function(name: str, about: str) -> Callable[..., Any]:
    op = operators.BY_NAME[name]

    def function(x: Any, y: Any, dtype: Any = None, mask: Any = None, max_free_vec_size: int = 0) -> Any:
        return binary(op, x, y, dtype, mask)

    return _named(function, name, f"{about}, element by element, with NumPy's broadcasting.")


def _unary_function(name: str, about: str) -> Callable[..., Any]:
    op = operators.BY_NAME[name]

    def function(x: Any, dtype: Any = None, mask: Any = None) -> Any:
        return unary(op, x, dtype, mask)

    return _named(function, name, f"{about}, element by element.")


def _named(function: Callable[..., Any], name: str, about: str) -> Callable[..., Any]:
    operators.register(documented(function, name, about), name)
    return function


def documented(function: Callable[..., Any], name: str, about: str) -> Callable[..., Any]:
    """The function under a name of its own, also in tracebacks, and with a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name)
    function.__doc__ = about
    return function


add = _binary_function("add", "x + y")
subtract = _binary_function("subtract", "x - y")
multiply = _binary_function("multiply", "x * y")
divide = _binary_function("divide", "x / y")
power = _binary_function("power", "x ** y")
maximum = _binary_function("maximum", "The larger of x and y")
minimum = _binary_function("minimum", "The smaller of x and y")
mod = _binary_function("mod", "x modulo y, with the sign of y")
fmod = _binary_function("fmod", "x modulo y, with the sign of x")
abs_max = _binary_function("abs_max", "The larger of |x| and |y|")
abs_min = _binary_function("abs_min", "The smaller of |x| and |y|")
equal = _binary_function("equal", "x == y")
not_equal = _binary_function("not_equal", "x != y")
greater = _binary_function("greater", "x > y")
greater_equal = _binary_function("greater_equal", "x >= y")
less = _binary_function("less", "x < y")
less_equal = _binary_function("less_equal", "x <= y")
logical_and = _binary_function("logical_and", "x and y")
logical_or = _binary_function("logical_or", "x or y")
logical_xor = _binary_function("logical_xor", "x or y, but not both")
bitwise_and = _binary_function("bitwise_and", "x & y")
bitwise_or = _binary_function("bitwise_or", "x | y")
bitwise_xor = _binary_function("bitwise_xor", "x ^ y")
left_shift = _binary_function("left_shift", "x << y")
right_shift = _binary_function("right_shift", "x >> y")
bypass = _binary_function("bypass", "x")
average = _binary_function("average", "Mean, as an operator of reductions")
prelu = _binary_function("prelu", "x where positive, x * y elsewhere")

abs = _unary_function("abs", "|x|")
negative = _unary_function("negative", "-x")
exp = _unary_function("exp", "e ** x")
log = _unary_function("log", "Natural logarithm")
sin = _unary_function("sin", "Sine")
cos = _unary_function("cos", "Cosine")
tan = _unary_function("tan", "Tangent")
arctan = _unary_function("arctan", "Arc tangent")
tanh = _unary_function("tanh", "Hyperbolic tangent")
tanh_dx = _unary_function("tanh_dx", "Derivative of tanh")
sigmoid = _unary_function("sigmoid", "1 / (1 + exp(-x))")
sigmoid_dx = _unary_function("sigmoid_dx", "Derivative of sigmoid")
silu = _unary_function("silu", "x * sigmoid(x)")
silu_dx = _unary_function("silu_dx", "Derivative of silu")
gelu = _unary_function("gelu", "x * normal distribution function of x")
gelu_dx = _unary_function("gelu_dx", "Derivative of gelu")
gelu_apprx_tanh = _unary_function("gelu_apprx_tanh", "gelu by tanh")
gelu_apprx_tanh_dx = _unary_function("gelu_apprx_tanh_dx", "Derivative of gelu by tanh")
gelu_apprx_sigmoid = _unary_function("gelu_apprx_sigmoid", "gelu by sigmoid")
gelu_apprx_sigmoid_dx = _unary_function("gelu_apprx_sigmoid_dx", "Derivative of gelu by sigmoid")
erf = _unary_function("erf", "Error function")
erf_dx = _unary_function("erf_dx", "Derivative of the error function")
relu = _unary_function("relu", "max(x, 0)")
softplus = _unary_function("softplus", "log(1 + exp(x))")
mish = _unary_function("mish", "x * tanh(softplus(x))")
square = _unary_function("square", "x * x")
sqrt = _unary_function("sqrt", "Square root")
rsqrt = _unary_function("rsqrt", "1 / sqrt(x)")
reciprocal = _unary_function("reciprocal", "1 / x")
sign = _unary_function("sign", "-1, 0 or 1")
ceil = _unary_function("ceil", "Smallest integer not below x")
floor = _unary_function("floor", "Largest integer not above x")
trunc = _unary_function("trunc", "x without its fraction")
invert = _unary_function("invert", "Bits of x inverted")
logical_not = _unary_function("logical_not", "1 where x is 0")

operators.register(copy, "copy")


def where(condition: Any, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> NkiTensor:
    """x where the condition is not zero, else y.

    Raises:
        NkiValidationError: None of the three is a tile.
    """
    tiles = [tile for tile in (condition, x, y) if isinstance(tile, NkiTensor)]
    if not tiles:
        raise refuse("where needs a tile among its arguments")
    shape = tuple(np.broadcast_shapes(*(tile.shape for tile in tiles)))
    values = [tile.dtype for tile in (x, y) if isinstance(tile, NkiTensor)]
    kind = as_dtype(dtype) if dtype is not None else (values[0] if values else dtypes.float32)
    left = Restriction(shape, mask)

    def emit(target: NkiTensor) -> None:
        left.run(target, lambda part: _select(part, left.part(condition), left.part(x), left.part(y)))

    return result(shape, kind, emit)


def _select(target: NkiTensor, condition: Any, x: Any, y: Any) -> None:
    if not isinstance(condition, NkiTensor):
        chosen = x if condition else y
        assign(target, chosen)
        return
    predicate = condition
    if condition.dtype.is_float or condition.dtype is dtypes.bool_ or condition.shape != target.shape:
        predicate = ndarray(target.shape, dtypes.uint8, MemoryRegion.sbuf)
        tensor_scalar(predicate, condition.broadcast_to(target.shape), "not_equal", 0.0)
    if isinstance(y, NkiTensor):
        assign(target, y.broadcast_to(target.shape))
    else:
        memset(target, y)
    source = x
    if isinstance(x, NkiTensor):
        source = x.broadcast_to(target.shape)
        if source.dtype is not target.dtype:
            source = ndarray(target.shape, target.dtype, MemoryRegion.sbuf)
            tensor_copy(source, x.broadcast_to(target.shape))
    tensor_copy_predicated(target, source, predicate)


def dropout(x: NkiTensor, rate: Any, dtype: Any = None, mask: Any = None) -> NkiTensor:
    """x with elements replaced by 0, each with probability `rate`."""
    kind = as_dtype(dtype) if dtype is not None else x.dtype
    left = Restriction(x.shape, mask)

    def emit(target: NkiTensor) -> None:
        left.run(target, lambda part: dropout_instruction(part, left.part(x), rate))

    return result(x.shape, kind, emit)


def matmul(x: NkiTensor, y: NkiTensor, transpose_x: bool = False, mask: Any = None) -> NkiTensor:
    """x @ y in PSUM (x.T @ y with `transpose_x`), fp32; x is turned on the Tensor engine first if needed.

    Args:
        x: (M, K) tile with M and K <= 128, or (K, M) with `transpose_x`.
        y: (K, N) tile, N <= 512.
        transpose_x: x lies with the contraction on the partitions already.
        mask: Where the result is computed (older dialect).

    Raises:
        NkiValidationError: A tile is too large.
    """
    ready()
    stationary = in_sbuf(x)
    moving = in_sbuf(y)
    if not transpose_x:
        turned = ndarray((x.shape[1], x.shape[0]), x.dtype, MemoryRegion.psum)
        nc_transpose(turned, stationary)
        stationary = ndarray(turned.shape, x.dtype, MemoryRegion.sbuf)
        tensor_copy(stationary, turned)
    shape = (stationary.size // stationary.shape[0], moving.size // moving.shape[0])
    return matmul_result(stationary, moving, shape, mask)


def matmul_result(
    stationary: NkiTensor, moving: NkiTensor, shape: tuple[int, ...], mask: Any = None, **options: Any
) -> NkiTensor:
    """stationary.T @ moving, held back: `psum += result` accumulates in place."""
    left = Restriction(shape, mask)

    def emit(target: NkiTensor, accumulate: bool = False) -> None:
        place = target
        if place.buffer is not MemoryRegion.psum:
            place = ndarray(shape, dtypes.float32, MemoryRegion.psum)
        rows, columns = left.rectangle if left.rectangle is not None else ((0, shape[0]), (0, shape[1]))
        weights = in_sbuf(stationary if left.rectangle is None else stationary[:, slice(*rows)])
        data = in_sbuf(moving if left.rectangle is None else moving[:, slice(*columns)])
        if not weights.dtype.is_float and data.dtype.is_float:
            weights = _converted(weights, data.dtype)
        part = place if left.rectangle is None else place.within((rows, columns))
        add = None if accumulate else False
        nc_matmul(part, weights, data, accumulate=add, **options)
        if place is not target:
            tensor_copy(target, place)

    return result(shape, dtypes.float32, emit, MemoryRegion.psum, accumulates=True, left=left)


def _converted(tile: NkiTensor, dtype: DType) -> NkiTensor:
    """The tile as another type: the Tensor engine takes no identity matrix of bytes beside floats."""
    floats = ndarray(tile.shape, dtype, MemoryRegion.sbuf)
    tensor_copy(floats, tile)
    return floats


NkiTensor.arithmetic.update({
    name: globals()[name] for name in (
        "add", "subtract", "multiply", "divide", "power", "bitwise_and", "bitwise_or", "bitwise_xor",
        "left_shift", "right_shift", "less", "less_equal", "greater", "greater_equal", "negative", "invert",
        "abs",
    )
})  # fmt: skip
NkiTensor.arithmetic.update({"assign": assign, "copy": copy, "equal": equal, "not_equal": not_equal})
