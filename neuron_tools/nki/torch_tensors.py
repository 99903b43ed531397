"""PyTorch tensors as kernel arguments, where the program has loaded PyTorch; nothing here imports it."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from neuron_tools.nki.dtypes import DType, find_dtype

Array = npt.NDArray[Any]
_NARROWED = {"torch.float64": "float32", "torch.int64": "int32"}
_SAME_BYTES = {
    "torch.bfloat16": ("int16", ml_dtypes.bfloat16),
    "torch.float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "torch.float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
}
"""Types that NumPy lacks: PyTorch's integer type of that size, and the type of the elements."""


class TorchAdapter:
    """Tensors of any device; results lie on the device of the first argument and carry no gradient."""

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
        """Its elements, of the storage type."""
        found = find_dtype(self.dtype(value))
        if found is None:
            raise TypeError(f"NKI has no element type {value.dtype}.")
        held = value.detach().cpu().contiguous()
        if str(value.dtype) in _SAME_BYTES:
            integer, element = _SAME_BYTES[str(value.dtype)]
            viewed: Array = held.view(getattr(sys.modules["torch"], integer)).numpy().view(element)
            return viewed
        return np.ascontiguousarray(held.numpy(), dtype=found.dtype)

    def update(self, value: Any, array: Array) -> None:
        """Copy back what was written into a copy."""
        if not np.array_equal(self.array(value), array):
            value.detach().copy_(self._tensor(array))

    def result(self, array: Array, dtype: DType, example: Any) -> Any:
        """The elements as a tensor of their own."""
        return self._tensor(np.array(array)).to(example.device)

    def empty(self, shape: tuple[int, ...], dtype: DType, example: Any) -> Any:
        """Zeros."""
        return self.result(np.zeros(shape, dtype.dtype), dtype, example)

    def _tensor(self, array: Array) -> Any:
        torch = sys.modules["torch"]
        for name, (integer, element) in _SAME_BYTES.items():
            if array.dtype == element:
                same = getattr(torch, name.removeprefix("torch."))
                return torch.from_numpy(np.ascontiguousarray(array).view(integer)).view(same)
        return torch.from_numpy(np.ascontiguousarray(array))
