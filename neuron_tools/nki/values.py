# NumPy arithmetic on arrays of any type is typed as Any:
# mypy: disable-error-code="no-any-return"
"""Values of operands and results: fp32 inside the engines, rounded once when written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Array
from neuron_tools.nki import dtypes
from neuron_tools.nki.conversion import as_element
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tracer import OF_THREAD, where

if TYPE_CHECKING:
    from neuron_tools.nki.tensor import NkiTensor

_FLOAT32 = np.dtype(np.float32)
_TF32_MASK = np.uint32(0xFFFFE000)


def single(view: NkiTensor) -> Array:
    """The operand as fp32: the storage itself where it is fp32, a converted copy otherwise."""
    return as_element(view.array, _FLOAT32)


def exact(view: NkiTensor) -> Array:
    """The operand as it is stored, for integers and bit patterns."""
    return view.array


def column(operand: Any, partitions: int, rank: int) -> Any:
    """A scalar operand: a number as fp32, or one value per partition shaped to broadcast along `rank`.

    Raises:
        NkiValidationError: It is neither.
    """
    if isinstance(operand, (int, float, np.number)):
        return np.float32(operand)
    if isinstance(operand, VirtualRegister):
        return np.float32(operand.read())
    if not hasattr(operand, "array"):
        raise NkiValidationError(
            f"a scalar operand is a number or a tile of one element per partition, got {operand!r}", where()
        )
    values = single(operand)
    return values.reshape((values.shape[0] if values.ndim else 1,) + (1,) * (rank - 1))


def cast(values: Array, dtype: DType) -> Array:
    """fp32 (or integer) results rounded to a storage type; `NKI_PRECISE_FP=0` keeps narrow floats in fp32.

    Floats round to nearest even; integers round to nearest even and saturate, as the engines' write
    converters do.
    """
    storage = dtype.dtype
    if dtype.is_narrow and OF_THREAD.trace is not None and OF_THREAD.trace.wide:
        storage = _FLOAT32
    if values.dtype == storage and dtype is not dtypes.tfloat32:
        return values
    if dtype is dtypes.tfloat32:
        bits = values.astype(np.float32).view(np.uint32)
        rounded: Array = ((bits + np.uint32(0x1000)) & _TF32_MASK).view(np.float32)
        return rounded
    if dtype.is_integer and values.dtype.kind not in "iub":
        limits = np.iinfo(storage)
        whole = np.rint(values.astype(np.float64, copy=False))
        return np.clip(np.nan_to_num(whole), limits.min, limits.max).astype(storage)
    if dtype is dtypes.bool_:
        return values != 0
    with np.errstate(over="ignore", invalid="ignore"):
        return as_element(values, storage)


def write(view: NkiTensor, values: Any) -> None:
    """Store a result into a view, rounded to its type; the elements may come in another shape."""
    if view.backing.borrowed:
        view.backing.make_own()
    array = cast(np.asarray(values), view.dtype)
    if array.shape != view.shape:
        size = view.size
        array = array.reshape(view.shape) if array.size == size else np.broadcast_to(array, view.shape)
    if view.gather is not None:
        _scatter(view, view.gather, array)
        return
    target = view.array
    np.copyto(target, array, casting="unsafe")


def _scatter(view: NkiTensor, places: npt.NDArray[np.int64], array: Array) -> None:
    """Store elements at their positions; what a mask leaves out stays as it is."""
    if places.size and places.min() < 0:
        view.reached()
        kept = places >= 0
        view.flat[places[kept]] = np.broadcast_to(array, places.shape)[kept]
    else:
        view.flat[places] = array


def fits_out(view: NkiTensor, shape: tuple[int, ...]) -> bool:
    """Whether fp32 results of `shape` can be computed straight into the view."""
    return view.gather is None and view.shape == shape and view.array.dtype == _FLOAT32 and (
        view.dtype is dtypes.float32
    )  # fmt: skip
