"""What the runtime library holds: loaded artifacts, tensors, and sets of tensors, by handle."""

from __future__ import annotations

import itertools
from typing import Any, TypeVar

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.nki.kept_kernels import KeptKernel, kept_kernel
from neuron_tools.frozen import frozen
from neuron_tools.neff import Neff
from neuron_tools.nki.abstract import AbstractArray

INPUT, OUTPUT = 0, 1
"""Usages of a model's tensors."""
_Held = TypeVar("_Held")


class HandleError(NeuronToolsError):
    """A handle stands for nothing of that kind, or for a tensor that is too small."""


@frozen
class ModelTensor:
    """A tensor that a model takes or gives.

    Attributes:
        name: Its name.
        usage: INPUT or OUTPUT.
        form: Shape and type.
    """

    name: str
    usage: int
    form: AbstractArray

    @property
    def bytes(self) -> int:
        """Bytes of its elements."""
        return int(np.prod(self.form.shape, dtype=np.int64)) * self.form.dtype.dtype.itemsize


class Model:
    """A loaded artifact.

    Args:
        neff: It.

    Raises:
        NeffError: Its kernel is not on this machine.
    """

    def __init__(self, neff: Neff) -> None:
        self.name = neff.program.name
        self._kernel: KeptKernel = kept_kernel(neff)
        self._target = neff.program.target
        self.inputs = [ModelTensor(f"input{n}", INPUT, form) for n, form in enumerate(self._kernel.inputs)]
        self.outputs = [
            ModelTensor(f"output{n}", OUTPUT, form) for n, form in enumerate(self._kernel.results)
        ]

    def execute(self, given: dict[str, bytearray], results: dict[str, bytearray]) -> None:
        """Compute the results from the inputs.

        Args:
            given: Bytes of the inputs by name.
            results: Bytes of the outputs by name, which are written.

        Raises:
            HandleError: A tensor is missing from a set, or too small.
            NkiError: The kernel breaks a rule.
        """
        arrays = [_elements(self._bytes_of(tensor, given), tensor) for tensor in self.inputs]
        for tensor, value in zip(self.outputs, self._kernel.compute(arrays, self._target)):
            data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            self._bytes_of(tensor, results)[: tensor.bytes] = data.tobytes()

    def _bytes_of(self, tensor: ModelTensor, tensors: dict[str, bytearray]) -> bytearray:
        held = tensors.get(tensor.name)
        if held is None or len(held) < tensor.bytes:
            raise HandleError(
                f"{self.name} needs a tensor {tensor.name} of {tensor.bytes} bytes in its set; add one "
                "(nrt_add_tensor_to_tensor_set)."
            )
        return held


def _elements(data: bytearray, tensor: ModelTensor) -> Array:
    elements = np.frombuffer(data, np.uint8, tensor.bytes).view(tensor.form.dtype.dtype)
    return np.array(elements.reshape(tensor.form.shape))


class Handles:
    """Objects by the number that a program holds in place of them."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}
        self._numbers = itertools.count(1)

    def add(self, held: Any) -> int:
        """Hold an object; returns its number."""
        number = next(self._numbers)
        self._held[number] = held
        return number

    def get(self, number: int | None, kind: type[_Held]) -> _Held:
        """The object of a number.

        Raises:
            HandleError: There is none of that kind.
        """
        held = self._held.get(number or 0)
        if not isinstance(held, kind):
            raise HandleError(
                f"{number} is no handle of a {kind.__name__.lower()}: it was freed, or never made."
            )
        return held

    def drop(self, number: int | None) -> None:
        """Let an object go."""
        self._held.pop(number or 0, None)

    def clear(self) -> None:
        """Let all go."""
        self._held.clear()
