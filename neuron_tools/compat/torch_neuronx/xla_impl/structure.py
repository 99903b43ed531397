"""`torch_neuronx.xla_impl.structure`: nested inputs to flat lists of tensors, and results back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

__all__ = ["Flattener", "Packer"]


class Flattener:
    """Makes a flat list of the inputs of a call.

    Args:
        layout: The inputs' structure, with each tensor's place.
        exclude: Places that the model does not use.
    """

    def __init__(self, layout: Sequence[Any], exclude: Sequence[int] | None = None) -> None:
        self.layout = layout
        self.exclude = exclude

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The tensors that the model takes."""
        left_out = set(self.exclude or ())
        return [value for place, value in _pairs(self.layout, inputs) if place not in left_out]


def _pairs(layout: Any, inputs: Any) -> Iterator[tuple[int, torch.Tensor]]:
    if isinstance(layout, int):
        yield layout, inputs
    else:
        parts = layout.items() if isinstance(layout, Mapping) else enumerate(layout)
        for key, part in parts:
            yield from _pairs(part, inputs[key])


class Packer:
    """Puts results together.

    Args:
        layout: Their structure, with a place of `identifiers` for each tensor.
        identifiers: Which of the results stands in each place.
        constants: Place -> what stands there and is no tensor.
    """

    def __init__(
        self, layout: Any, identifiers: Sequence[int], constants: Mapping[int, Any] | None = None
    ) -> None:
        self.layout, self.identifiers, self.constants = layout, identifiers, constants or {}

    def __call__(self, outputs: Sequence[torch.Tensor]) -> Any:
        """The results in their structure."""
        return self._packed(self.layout, outputs)

    def _packed(self, layout: Any, outputs: Sequence[torch.Tensor]) -> Any:
        if isinstance(layout, int):
            return self.constants[layout] if layout in self.constants else outputs[self.identifiers[layout]]
        if isinstance(layout, Mapping):
            return {key: self._packed(part, outputs) for key, part in layout.items()}
        return type(layout)(self._packed(part, outputs) for part in layout)
