"""Arrays of other libraries as kernel arguments: NumPy and PyTorch; others register their own kind."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.abstract import AbstractAdapter
from neuron_tools.nki.dtypes import DType, find_dtype
from neuron_tools.nki.host_arrays import host_dtype
from neuron_tools.nki.torch_tensors import TorchAdapter


class Adapter(Protocol):
    """How one kind of array goes into a kernel and results come out.

    Attributes:
        makes_values_up: Whether its arrays have no values, so that a run sees others than the device.
    """

    makes_values_up: bool

    def accepts(self, value: Any) -> bool:
        """Whether the value is of this kind."""
        ...

    def shape(self, value: Any) -> tuple[int, ...]:
        """Its shape."""
        ...

    def dtype(self, value: Any) -> Any:
        """Its type, in any spelling that `as_dtype` knows."""
        ...

    def array(self, value: Any) -> Array:
        """Its elements, C-contiguous and of the storage type; the kernel may write into them."""
        ...

    def update(self, value: Any, array: Array) -> None:
        """Take back what the kernel wrote into a copy of `array(value)`."""
        ...

    def result(self, array: Array, dtype: DType, example: Any) -> Any:
        """A result of this kind from elements; `example` is the first argument of this kind."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: DType, example: Any) -> Any:
        """A result of this kind whose values were not computed."""
        ...


class NumpyAdapter:
    """NumPy arrays, and whatever has `__array__` and a type NKI knows."""

    makes_values_up = False

    def accepts(self, value: Any) -> bool:
        """Whether it is a NumPy array."""
        return isinstance(value, np.ndarray)

    def shape(self, value: Any) -> tuple[int, ...]:
        """Its shape."""
        return tuple(value.shape)

    def dtype(self, value: Any) -> Any:
        """Its type; float64 and int64 become what the chip has."""
        return {"float64": "float32", "int64": "int32"}.get(value.dtype.name, value.dtype)

    def array(self, value: Any) -> Array:
        """Its elements; a copy only where they do not lie in order or have another type."""
        found = find_dtype(self.dtype(value))
        assert found is not None
        if found.packed > 1:
            return np.ascontiguousarray(value).view(found.dtype)
        return np.ascontiguousarray(value, dtype=found.dtype)

    def update(self, value: Any, array: Array) -> None:
        """Copy back what was written into a copy."""
        if value.flags.writeable:
            value[...] = array

    def result(self, array: Array, dtype: DType, example: Any) -> Any:
        """The elements as a NumPy array of their own: the given one where it is nobody else's."""
        own = array if array.flags.owndata else np.array(array)
        return own.view(host_dtype(dtype)) if dtype.packed > 1 else own

    def empty(self, shape: tuple[int, ...], dtype: DType, example: Any) -> Any:
        """Zeros."""
        return np.zeros(shape, host_dtype(dtype))


_ADAPTERS: list[Adapter] = [NumpyAdapter(), TorchAdapter(), AbstractAdapter()]


def register_adapter(adapter: Adapter) -> None:
    """Let another kind of array be a kernel argument; asked before those registered earlier."""
    _ADAPTERS.insert(0, adapter)


def find_adapter(value: Any) -> Adapter | None:
    """The adapter of a value; None where it is no array."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return None
    for adapter in _ADAPTERS:
        if adapter.accepts(value):
            return adapter
    return None
