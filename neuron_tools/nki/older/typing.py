"""`neuronxcc.nki.typing`: annotations of kernels, `nt.tensor[128, 512]`, `nt.mutable_tensor`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.arguments import NumpyAdapter, register_adapter
from neuron_tools.nki.dtypes import DType, as_dtype
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import where


class _Annotation:
    """An annotation that may be indexed and joined with `|`; it has no effect."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, form: Any) -> _Annotation:
        """`tensor[[250, 512], nl.float32]` stands for an argument of that form; `tensor[1]` annotates."""
        if isinstance(form, tuple) and len(form) == 2 and isinstance(form[0], (list, tuple)):
            return TensorForm(self.name, tuple(int(extent) for extent in form[0]), as_dtype(form[1]))
        return self

    def __call__(self, *arguments: Any, **_options: Any) -> Any:
        return arguments[0] if arguments else self

    def __or__(self, _other: Any) -> _Annotation:
        return self

    __ror__ = __or__

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, NkiTensor)

    def __repr__(self) -> str:
        return f"nki.typing.{self.name}"


class _Scalar(_Annotation):
    """`scalar(tile)`: a tile's one element as a number, for a loop's bound or an index."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if not arguments or not isinstance(arguments[0], NkiTensor):
            return super().__call__(*arguments, **options)
        tile = arguments[0]
        if tile.size != 1:
            raise NkiValidationError(
                f"scalar takes a tile of one element, got shape {tile.shape}; take one of it", where()
            )
        return VirtualRegister(int(tile.known_integers().reshape(-1)[0]))


class TensorForm(_Annotation):
    """An argument of which only shape and type are given: its values are made up.

    Attributes:
        shape: Its shape.
        dtype: Its type.
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: DType) -> None:
        super().__init__(name)
        self.shape, self.dtype = shape, dtype


class FormAdapter(NumpyAdapter):
    """Arguments given by their form: random floats in [0, 1), integers of zero."""

    makes_values_up = True

    def accepts(self, value: Any) -> bool:
        """Whether only shape and type are given."""
        return isinstance(value, TensorForm)

    def dtype(self, value: Any) -> Any:
        """Its type."""
        return value.dtype

    def array(self, value: Any) -> npt.NDArray[Any]:
        """Values of its form, the same in every run."""
        if not value.dtype.is_float:
            return np.zeros(value.shape, value.dtype.dtype)
        made: npt.NDArray[Any] = np.random.default_rng(0).random(value.shape, np.float32)
        return made.astype(value.dtype.dtype, copy=False)

    def update(self, value: Any, array: npt.NDArray[Any]) -> None:
        """Nothing keeps what was written."""


register_adapter(FormAdapter())

tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor")
scalar = _Scalar("scalar")
mutable = _Annotation("mutable")
immutable = _Annotation("immutable")
