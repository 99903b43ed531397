"""PyTorch tensors as kernel arguments, where the program has loaded PyTorch; nothing here imports it."""

from __future__ import annotations

import ctypes
import sys
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.nki.dtypes import DType, find_dtype

_NARROWED = {"torch.float64": "float32", "torch.int64": "int32"}
_ELEMENTS = {
    "torch.bfloat16": np.dtype(ml_dtypes.bfloat16),
    "torch.float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "torch.float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "torch.bool": np.dtype(np.bool_),
}
"""Types whose names NumPy lacks or spells otherwise."""
_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn", "tfloat32": "float32"}
"""Kernel types that PyTorch has under another name."""
_HOST_DEVICES = ("cpu", "neuron")
"""Devices whose memory this process can read: the simulated device's is host memory."""


class TorchAdapter:
    """Tensors of any device; results lie on the device of the first argument and carry no gradient.

    The memory of tensors on the host and on the simulated device is read and written in place.
    """

    makes_values_up = False

    def accepts(self, value: Any) -> bool:
        """Whether it is a PyTorch tensor."""
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(value, torch.Tensor)

    def shape(self, value: Any) -> tuple[int, ...]:
        """Its shape."""
        return tuple(value.shape)

    def dtype(self, value: Any) -> Any:
        """Its type; 64-bit types become what the chip has."""
        return _NARROWED.get(str(value.dtype), str(value.dtype))

    def array(self, value: Any) -> Array:
        """Its elements, of the storage type: the tensor's own memory where that is in order.

        Raises:
            TypeError: NKI has no such element type.
        """
        found = find_dtype(self.dtype(value))
        if found is None:
            raise TypeError(f"NKI has no element type {value.dtype}.")
        return np.ascontiguousarray(_readable(value), dtype=found.dtype)

    def update(self, value: Any, array: Array) -> None:
        """Copy back what was written into a copy."""
        if value.device.type in _HOST_DEVICES:
            _readable(value)[...] = array
        else:
            value.detach().copy_(self._tensor(array, "cpu"))

    def result(self, array: Array, dtype: DType, example: Any) -> Any:
        """The elements as a tensor of their own."""
        device = example.device
        made = self._tensor(array, device if device.type in _HOST_DEVICES else "cpu")
        return made.to(device)

    def empty(self, shape: tuple[int, ...], dtype: DType, example: Any) -> Any:
        """A tensor without values."""
        return _torch().empty(shape, dtype=torch_type(dtype), device=example.device)

    def _tensor(self, array: Array, device: Any) -> Any:
        made = _torch().empty(array.shape, dtype=torch_type(array.dtype), device=device)
        host_view(made)[...] = array
        return made


def torch_type(dtype: Any) -> Any:
    """PyTorch's type for elements of a kernel's or a NumPy type."""
    found = find_dtype(dtype)
    name = str(found) if found is not None else np.dtype(dtype).name
    return getattr(_torch(), _TORCH_NAMES.get(name, name))


def host_view(tensor: Any) -> Array:
    """A tensor's memory on the host or the simulated device as a NumPy array of its shape and strides.

    The array is valid as long as the tensor is.
    """
    element = _ELEMENTS.get(str(tensor.dtype)) or np.dtype(str(tensor.dtype).removeprefix("torch."))
    shape = tuple(tensor.shape)
    if prod(shape) == 0:
        return np.zeros(shape, element)
    strides = tuple(stride * element.itemsize for stride in tensor.stride())
    length = sum((extent - 1) * stride for extent, stride in zip(shape, strides)) + element.itemsize
    memory = (ctypes.c_char * length).from_address(tensor.data_ptr())
    view: Array = np.ndarray(shape, element, memory, strides=strides)
    return view


def _readable(tensor: Any) -> Array:
    """A tensor's elements; a copy where the device's memory is not the host's."""
    own = tensor.detach()
    return host_view(own if own.device.type in _HOST_DEVICES else own.cpu())


def _torch() -> Any:
    return sys.modules["torch"]
