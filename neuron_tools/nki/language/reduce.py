"""Language functions that reduce: sums, maxima, means, and what is built from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neuron_tools.nki import dtypes, operators, tracer as tracing
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.isa.elementwise import reciprocal, tensor_tensor
from neuron_tools.nki.isa.issue import ready, refuse
from neuron_tools.nki.isa.reduction import tensor_reduce
from neuron_tools.nki.isa.scalar import activation
from neuron_tools.nki.isa.tensor_scalar import tensor_scalar
from neuron_tools.nki.language import math
from neuron_tools.nki.language.creation import ndarray
from neuron_tools.nki.language.movement import assign, copy
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer

Axis = int | Sequence[int]


def _axes(x: NkiTensor, axis: Axis) -> tuple[int, ...]:
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -x.ndim <= a < x.ndim for a in given):
        raise refuse(f"axis {axis} is outside a tile of shape {x.shape}; give one below {x.ndim}")
    return tuple(sorted(a % x.ndim for a in given))


def keeps_dimensions(axes: tuple[int, ...], keepdims: bool) -> bool:
    """Whether reduced dimensions stay: also where the partitions of an older dialect's tile are reduced."""
    return keepdims or (0 in axes and tracing.active().older_dialect)


def reduced_shape(x: NkiTensor, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Shape that a reduction over the axes leaves."""
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape))
    return tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)


def reduce_into(
    target: NkiTensor, op: Any, x: NkiTensor, axes: tuple[int, ...], negate: bool = False
) -> None:
    """Emit the reduction over any axes; the reduced ones are viewed as the last."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = (*kept, *axes)
    view = x.permute(order) if order != tuple(range(x.ndim)) and 0 not in axes else x
    last = tuple(range(view.ndim - len(axes), view.ndim)) if 0 not in axes else axes
    tensor_reduce(target, op, view, last, negate=negate)


def _reduction(name: str, op: str, about: str) -> Callable[..., NkiTensor]:
    operator = operators.BY_NAME[op]

    def function(
        x: NkiTensor,
        axis: Axis,
        dtype: Any = None,
        keepdims: bool = False,
        mask: Any = None,
    ) -> NkiTensor:
        axes = _axes(x, axis)
        kind = as_dtype(dtype) if dtype is not None else (
            dtypes.bool_ if operator.comparison else x.dtype
        )  # fmt: skip
        left = Restriction(x.shape, mask)
        kept = keeps_dimensions(axes, keepdims)

        def emit(target: NkiTensor) -> None:
            reduce_into(left.reduced(target, axes, kept), operator, left.part(x), axes)

        return result(reduced_shape(x, axes, kept), kind, emit, left=left)

    operators.register(math.documented(function, name, f"{about} over the axes."), op)
    return function


sum = _reduction("sum", "add", "Sum")
prod = _reduction("prod", "multiply", "Product")
max = _reduction("max", "maximum", "Maximum")
min = _reduction("min", "minimum", "Minimum")
all = _reduction("all", "logical_and", "Whether all are not zero,")


def _count(x: NkiTensor, axes: tuple[int, ...]) -> int:
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return count


def mean(x: NkiTensor, axis: Axis, dtype: Any = None, keepdims: bool = False, mask: Any = None) -> NkiTensor:
    """Mean over the axes."""
    axes = _axes(x, axis)
    kind = as_dtype(dtype) if dtype is not None else x.dtype

    def emit(target: NkiTensor) -> None:
        total = ndarray(target.shape, dtypes.float32, MemoryRegion.sbuf)
        reduce_into(total, "add", x, axes)
        tensor_scalar(target, total, "multiply", 1.0 / _count(x, axes))

    return result(reduced_shape(x, axes, keepdims), kind, emit, left=Restriction(x.shape, mask))


def var(x: NkiTensor, axis: Axis, dtype: Any = None, keepdims: bool = False, mask: Any = None) -> NkiTensor:
    """Variance over the free axes (divided by the count).

    Raises:
        NkiValidationError: The partition axis is among them.
    """
    axes = _axes(x, axis)
    if 0 in axes:
        raise refuse("var reduces free dimensions, not the partitions")
    kind = as_dtype(dtype) if dtype is not None else x.dtype

    def emit(target: NkiTensor) -> None:
        kept = reduced_shape(x, axes, True)
        middle = ndarray(kept, dtypes.float32, MemoryRegion.sbuf)
        reduce_into(middle, "add", x, axes)
        tensor_scalar(middle, middle, "multiply", 1.0 / _count(x, axes))
        centred = ndarray(x.shape, dtypes.float32, MemoryRegion.sbuf)
        _with_kept(centred, "subtract", x, middle)
        activation(centred, math.square, centred)
        total = ndarray(target.shape, dtypes.float32, MemoryRegion.sbuf)
        reduce_into(total, "add", centred, axes)
        tensor_scalar(target, total, "multiply", 1.0 / _count(x, axes))

    return result(reduced_shape(x, axes, keepdims), kind, emit, left=Restriction(x.shape, mask))


def _with_kept(target: NkiTensor, op: str, x: NkiTensor, kept: NkiTensor) -> None:
    """x op kept, where `kept` has size 1 on the reduced axes."""
    if kept.size == kept.shape[0]:
        tensor_scalar(target, x, op, kept.reshape((kept.shape[0], 1)))
    else:
        tensor_tensor(target, x, kept.broadcast_to(x.shape), op)


def softmax(
    x: NkiTensor, axis: Axis = -1, dtype: Any = None, compute_dtype: Any = None, mask: Any = None,
) -> NkiTensor:  # fmt: skip
    """exp(x - max) / sum(exp(x - max)) over the free axes."""
    axes = _axes(x, axis)
    kind = as_dtype(dtype) if dtype is not None else x.dtype
    inner = as_dtype(compute_dtype) if compute_dtype is not None else dtypes.float32

    def emit(target: NkiTensor) -> None:
        kept = reduced_shape(x, axes, True)
        top = ndarray(kept, dtypes.float32, MemoryRegion.sbuf)
        power = ndarray(x.shape, inner, MemoryRegion.sbuf)
        total = ndarray(kept, dtypes.float32, MemoryRegion.sbuf)
        per_partition = top.size == top.shape[0]
        reduce_into(top, "maximum", x, axes, negate=per_partition)
        if per_partition:
            activation(power, math.exp, x, bias=top.reshape((top.shape[0], 1)))
        else:
            _with_kept(power, "subtract", x, top)
            activation(power, math.exp, power)
        reduce_into(total, "add", power, axes)

        reciprocal(total, total)
        _with_kept(target, "multiply", power, total)

    return result(x.shape, kind, emit, left=Restriction(x.shape, mask))


def rms_norm(
    x: NkiTensor,
    w: Any,
    axis: Axis,
    n: int,
    epsilon: float = 1e-06,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
) -> NkiTensor:
    """x / sqrt(sum(x * x) / n + epsilon) * w over the axes."""
    axes = _axes(x, axis)
    kind = as_dtype(dtype) if dtype is not None else x.dtype

    def emit(target: NkiTensor) -> None:
        squares = ndarray(x.shape, dtypes.float32, MemoryRegion.sbuf)
        activation(squares, math.square, x)
        total = ndarray(reduced_shape(x, axes, True), dtypes.float32, MemoryRegion.sbuf)
        reduce_into(total, "add", squares, axes)
        tensor_scalar(total, total, "multiply", 1.0 / n, op1="add", operand1=epsilon)
        activation(total, math.rsqrt, total)
        _with_kept(squares, "multiply", x, total)
        if isinstance(w, NkiTensor):
            math.combine_tiles(target, operators.BY_NAME["multiply"], squares, w.broadcast_to(x.shape))
        else:
            tensor_scalar(target, squares, "multiply", 1.0 if w is None else float(w))

    return result(x.shape, kind, emit, left=Restriction(x.shape, mask))


def loop_reduce(
    x: NkiTensor,
    op: Any,
    loop_indices: Sequence[int],
    dtype: Any = None,
    mask: Any = None,
    name: str = "",
) -> NkiTensor:
    """Reduction of a tile over the iterations of loops around it (older dialect).

    Each call adds this iteration's tile to those of the iterations before; the first iteration of the named
    loops starts anew. Every iteration of the other loops around it has a total of its own.
    """
    trace = ready()
    operator = operators.find_operator(op)
    kept, indices = _loops_apart(trace, loop_indices)
    key = ("loop_reduce", trace.site(), kept)
    held = trace.shared.get(key)
    restriction = Restriction(x.shape, mask)
    if held is None or indices <= held[0]:
        total = ndarray(x.shape, as_dtype(dtype) if dtype is not None else x.dtype, MemoryRegion.sbuf)
        restriction.run(total, lambda part: assign(part, restriction.part(x)))
    else:
        total = held[1]
        restriction.run(total, lambda part: tensor_tensor(part, part, restriction.part(x), operator))
    trace.shared[key] = (indices, total)
    return total


def _loops_apart(
    trace: Tracer, reduced: Sequence[int]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """(Depth, value) of the loops under way that are kept, and values of those that are reduced over."""
    gone = {id(index) for index in reduced}
    kept = tuple((depth, int(at)) for depth, at in enumerate(trace.open_loops) if id(at) not in gone)
    return kept, tuple(int(at) for at in trace.open_loops if id(at) in gone)


def all_reduce(x: NkiTensor, op: Any, program_axes: Any, dtype: Any = None, mask: Any = None) -> NkiTensor:
    """Reduction of a tile over the instances of a launch grid (older dialect).

    Raises:
        NkiValidationError: The kernel was launched on more than one instance.
    """
    trace = tracing.active()
    if len(trace.grid) and tracing.grid_size(trace.grid) > 1:
        raise refuse("all_reduce over several instances of a launch grid is not simulated; write partial "
                     "results to HBM and reduce them in a second kernel")  # fmt: skip
    copied: NkiTensor = copy(x, dtype)
    return copied


__all__ = [
    "all", "all_reduce", "loop_reduce", "max", "mean", "min", "prod", "rms_norm", "softmax", "sum",
    "var",
]  # fmt: skip
