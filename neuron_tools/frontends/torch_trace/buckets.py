"""One model traced for several shapes; a function pads each call's inputs to one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_trace.batches import traced_shapes
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.placement import note_loaded

BucketKernel = Callable[..., tuple[Sequence[torch.Tensor], torch.Tensor]]


class BucketedModel(torch.nn.Module):
    """Models traced for one shape each, and what chooses among them.

    Args:
        models: In the order in which the kernel numbers them.
        kernel: Takes a list of tensors; returns them padded, and the number of the bucket.
        constants: Passed to the kernel after the tensors.
    """

    def __init__(
        self, models: Sequence[torch.nn.Module], kernel: BucketKernel, constants: Sequence[Any] = ()
    ) -> None:
        super().__init__()
        self.bucket_models = torch.nn.ModuleList(models)
        self._kernel = kernel
        self._constants = tuple(constants)
        self._shapes = [traced_shapes(model) for model in models]
        note_loaded(models)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The result of the bucket's model; padding is the kernel's business to take off."""
        padded, number = self._kernel(list(inputs), *self._constants)
        bucket = int(number)
        self._check(bucket, padded)
        return self.bucket_models[bucket](*padded)

    def _check(self, bucket: int, padded: Sequence[torch.Tensor]) -> None:
        largest = max(self._shapes, key=lambda shapes: [sum(shape) for shape in shapes])
        known = 0 <= bucket < len(self._shapes)
        if known and [tuple(value.shape) for value in padded] == self._shapes[bucket]:
            return
        given = ", ".join(str(list(value.shape)) for value in padded)
        expected = ", ".join(str(list(shape)) for shape in (self._shapes[bucket] if known else largest))
        raise TraceError(
            f"Inputs of shape {given} do not fit bucket {bucket}, which takes {expected}: trace a larger "
            "bucket, or shorten the inputs."
        )
