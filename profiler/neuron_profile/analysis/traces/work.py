"""FLOPs and bytes of PyTorch's operators, from the shapes and element types recorded with them.

FLOPs are those of products, convolutions and attention: two for each multiplication and addition; a causal
attention has half of them. Bytes are the inputs, read once, and the result, written once; of operators other
than those the result is taken to be as large as the largest input.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from neuron_tools.frozen import frozen

Shape = Sequence[int]
_SIZES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
_TYPES = {
    "float": "fp32", "double": "fp64", "c10::half": "fp16", "c10::bfloat16": "bf16", "int": "int32",
    "long int": "int64", "long": "int64", "unsigned char": "int8", "signed char": "int8", "bool": "int8",
    "c10::float8_e4m3fn": "fp8", "c10::float8_e5m2": "fp8", "c10::float8_e4m3fnuz": "fp8",
    "c10::float8_e5m2fnuz": "fp8",
}  # fmt: skip
_OTHER_SIZES = {"int32": 4, "int64": 8}
_MOST = 1 << 62


@frozen
class OperatorWork:
    """What one call of an operator computes and moves.

    Attributes:
        flops: 0 for operators that are no products.
        byte_count: Read and written at least.
        dtype: Element type of the first input: a key of an accelerator's peaks; "" if it is none of them.
    """

    flops: int
    byte_count: int
    dtype: str


def operator_work(name: str, arguments_json: str | None) -> OperatorWork | None:
    """The work of one call; None where its shapes were not recorded, or are none that a machine holds.

    Args:
        arguments_json: Arguments of the span: `Input Dims`, `Input type`, `Concrete Inputs`.
    """
    arguments = json.loads(arguments_json) if arguments_json else {}
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list):
        return None
    given = [_TYPES.get(str(kind).lower(), "") for kind in types]
    tensors = [
        (shape, kind) for shape, kind in zip(shapes, given) if kind and _is_shape(shape) and (shape or kind)
    ]
    if not tensors:
        return None
    inside = _Call(shapes, arguments.get("Concrete Inputs") or [])
    flops, result = _flops_and_result(name, inside)
    sizes = [prod(shape) * _size(kind) for shape, kind in tensors]
    dtype = tensors[0][1]
    written = max(sizes) if result is None else result * _size(dtype)
    if max(flops, sum(sizes), written) > _MOST:
        return None
    return OperatorWork(flops, sum(sizes) + written, dtype if dtype in _SIZES else "")


@frozen
class _Call:
    """Shapes and plain arguments of a call."""

    shapes: Sequence[Any]
    values: Sequence[Any]

    def shape(self, place: int, rank: int | None = None) -> Shape:
        """Shape of an argument.

        Raises:
            ValueError: It has none, or not of that rank.
        """
        shape = self.shapes[place] if place < len(self.shapes) else None
        if shape is None or not _is_shape(shape) or (rank is not None and len(shape) != rank):
            raise ValueError(f"argument {place} has no such shape")
        return list(shape)

    def numbers(self, place: int, count: int) -> list[int]:
        """A list of whole numbers that was given as a plain argument; one stands for all."""
        value = self.values[place] if place < len(self.values) else ""
        found = json.loads(value) if isinstance(value, str) and value else value
        if not isinstance(found, list) or not found:
            raise ValueError(f"argument {place} is no list")
        return [int(number) for number in (found * count if len(found) == 1 else found)]

    def is_true(self, place: int) -> bool:
        """Whether a plain argument is true."""
        return place < len(self.values) and str(self.values[place]).lower() == "true"


Counted = tuple[int, int | None]


def _flops_and_result(name: str, call: _Call) -> Counted:
    """FLOPs and elements of the result; the second None where it is not known."""
    count = _COUNTERS.get(name)
    if count is None:
        return 0, None
    try:
        return count(call)
    except (ValueError, IndexError, TypeError, ArithmeticError, RecursionError):
        return 0, None


def _product(left: int, right: int) -> Callable[[_Call], Counted]:
    """Of matrices, or batches of them, at two places."""

    def count(call: _Call) -> Counted:
        one, other = call.shape(left), call.shape(right)
        rows, columns = prod(one[:-1]), other[-1]
        return 2 * rows * one[-1] * columns, rows * columns

    return count


def _linear(call: _Call) -> Counted:
    one, weight = call.shape(0), call.shape(1, 2)
    rows = prod(one[:-1])
    return 2 * rows * one[-1] * weight[0], rows * weight[0]


def _convolution(padding: int, stride: int, dilation: int) -> Callable[[_Call], Counted]:
    """With the places of its plain arguments."""

    def count(call: _Call) -> Counted:
        given, weight = call.shape(0), call.shape(1)
        space = len(given) - 2
        pads, steps, spread = (call.numbers(place, space) for place in (padding, stride, dilation))
        sizes = [
            (size + 2 * pad - apart * (kernel - 1) - 1) // step + 1
            for size, kernel, pad, step, apart in zip(given[2:], weight[2:], pads, steps, spread)
        ]
        result = given[0] * weight[0] * prod(sizes)
        return 2 * result * prod(weight[1:]), result

    return count


def _convolution_backward(call: _Call) -> Counted:
    result, given, weight = call.shape(0), call.shape(1), call.shape(2)
    return 4 * prod(result) * prod(weight[1:]), prod(given) + prod(weight)


def _attention(query: int, causal: int, heads_first: bool, products: float) -> Callable[[_Call], Counted]:
    """With the place of the query, before key and value, and so many products of query and key's size."""

    def count(call: _Call) -> Counted:
        one, other = call.shape(query, 4), call.shape(query + 1, 4)
        batch, heads = one[0], one[1] if heads_first else one[2]
        rows, columns = (shape[2] if heads_first else shape[1] for shape in (one, other))
        share = 0.5 if call.is_true(causal) else 1.0
        return round(2 * products * share * batch * heads * rows * columns * one[3]), prod(one)

    return count


# Places of arguments: the signatures in PyTorch's aten/src/ATen/native/native_functions.yaml.
_COUNTERS: Mapping[str, Callable[[_Call], Counted]] = {
    "aten::mm": _product(0, 1),
    "aten::bmm": _product(0, 1),
    "aten::matmul": _product(0, 1),
    "aten::_scaled_mm": _product(0, 1),
    "aten::_int_mm": _product(0, 1),
    "aten::addmm": _product(1, 2),
    "aten::baddbmm": _product(1, 2),
    "aten::_addmm_activation": _product(1, 2),
    "aten::linear": _linear,
    "aten::cudnn_convolution": _convolution(2, 3, 4),
    "aten::miopen_convolution": _convolution(3, 4, 5),
    "aten::convolution": _convolution(4, 3, 5),
    "aten::_convolution": _convolution(4, 3, 5),
    "aten::convolution_overrideable": _convolution(4, 3, 5),
    "aten::convolution_backward": _convolution_backward,
    "aten::_scaled_dot_product_flash_attention": _attention(0, 4, True, 2),
    "aten::_scaled_dot_product_efficient_attention": _attention(0, 6, True, 2),
    "aten::_scaled_dot_product_cudnn_attention": _attention(0, 6, True, 2),
    "aten::_flash_attention_forward": _attention(0, 8, False, 2),
    "aten::_flash_attention_backward": _attention(1, 11, False, 5),
    "aten::_efficient_attention_forward": _attention(0, 99, False, 2),
}


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(size, int) and size >= 0 for size in value)


def _size(kind: str) -> int:
    return _SIZES.get(kind) or _OTHER_SIZES.get(kind, 0)
