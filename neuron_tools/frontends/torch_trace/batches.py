"""Batches of any size for a model that was traced for one: in pieces, on one core or over several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_trace.compiling import SIGNATURE
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.inline_weights import read_artifact
from neuron_tools.frontends.torch_trace.operator import results_on_device
from neuron_tools.frontends.torch_trace.placement import all_cores, check_cores, on_core
from neuron_tools.frontends.torch_trace.shapes import shape_of


class BatchedModel(torch.nn.Module):
    """Cuts batches into pieces of the size that a model was traced for, and puts the results together.

    Args:
        model: A traced model, whole on the device.
        cores: Cores that take the pieces in turn; none: the core that the model was loaded on.
        dim: Dimension of the batch, in all inputs and results.
        any_size: Whether a batch may be of any size; else it has one whole piece for each core that it uses.

    Raises:
        TraceError: It is no traced model, it keeps states, or there is no such core.
    """

    def __init__(
        self, model: torch.nn.Module, cores: Sequence[int], dim: int = 0, any_size: bool = True
    ) -> None:
        super().__init__()
        check_cores(cores)
        self.module = model
        self.device_ids = list(cores)
        self.dim = dim
        self._any_size = any_size
        self._piece = traced_batch(model, dim)
        if next(model.parameters(), None) is not None:  # a traced model's parameters are its states
            raise TraceError(
                "The model keeps states from call to call (input_output_aliases), which the pieces of a "
                "batch would overwrite one after another: trace it without states, or for the whole batch."
            )

    def disable_dynamic_batching(self) -> None:
        """Take only batches of whole pieces of the traced size, at most one for each core."""
        self._any_size = False

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The model's results for a whole batch.

        Raises:
            TraceError: The batch is not of whole pieces, one a core at most, and its size may not vary.
        """
        size = inputs[0].shape[self.dim]
        cores = max(len(self.device_ids), 1)
        if not self._any_size and size not in range(self._piece, self._piece * cores + 1, self._piece):
            raise TraceError(
                f"The batch has {size} samples. Without dynamic batching it must be a multiple of "
                f"{self._piece}, up to {self._piece * cores} on {cores} cores: change it, or leave dynamic "
                "batching on."
            )
        pieces = [self._cut(inputs, first) for first in range(0, size, self._piece)]
        results = [self._run(piece, number) for number, piece in enumerate(pieces)]
        return self._join(results, size)

    def _cut(self, inputs: Sequence[torch.Tensor], first: int) -> list[torch.Tensor]:
        length = min(self._piece, inputs[0].shape[self.dim] - first)
        return [self._filled(value.narrow(self.dim, first, length)) for value in inputs]

    def _filled(self, piece: torch.Tensor) -> torch.Tensor:
        """The last piece with zeros after its samples."""
        missing = self._piece - piece.shape[self.dim]
        if not missing:
            return piece
        sizes = [missing if d == self.dim else extent for d, extent in enumerate(piece.shape)]
        return torch.cat([piece, piece.new_zeros(sizes)], self.dim)

    def _run(self, piece: Sequence[torch.Tensor], number: int) -> Any:
        """Start a piece on its core; the host waits for none before all have been started."""
        ids = self.device_ids
        with on_core(ids[number % len(ids)]) if ids else nullcontext(), results_on_device():
            return self.module(*piece)

    def _join(self, results: Sequence[Any], size: int) -> Any:
        leaves, structures = zip(*(pytree.tree_flatten(result) for result in results))
        whole = (torch.cat([part.cpu() for part in parts], self.dim) for parts in zip(*leaves))
        joined = [result.narrow(self.dim, 0, size) for result in whole]
        return pytree.tree_unflatten(joined, structures[0])


class DataParallel(BatchedModel):
    """Runs a traced model on several cores, each with a part of the batch.

    Args:
        model: A traced model, or the file of one.
        device_ids: Cores ("nc:1" or 1); all of this process by default.
        dim: Dimension of the batch.
        set_dynamic_batching: Take batches of any size.

    Raises:
        TraceError: It is no traced model, it keeps states, or there is no such core.
    """

    def __init__(
        self,
        model: torch.nn.Module | str,
        device_ids: Sequence[int | str] | None = None,
        dim: int = 0,
        set_dynamic_batching: bool = True,
    ) -> None:
        loaded = torch.jit.load(model) if isinstance(model, str) else model
        cores = (
            all_cores() if device_ids is None else [int(str(core).removeprefix("nc:")) for core in device_ids]
        )
        super().__init__(loaded, cores, dim, set_dynamic_batching)
        self.num_workers = len(self.device_ids)


def traced_batch(model: torch.nn.Module, dim: int = 0) -> int:
    """Samples that a model was traced for.

    Args:
        model: A traced model.
        dim: Dimension of the batch.

    Raises:
        TraceError: It is no traced model, or its first input has no such dimension.
    """
    for shape in traced_shapes(model):
        if -len(shape) <= dim < len(shape):
            return shape[dim]
    raise TraceError(
        f"The model is none that torch_neuronx.trace made for inputs with dimension {dim}: trace it first, "
        "with an example batch."
    )


def traced_shapes(model: torch.nn.Module) -> list[tuple[int, ...]]:
    """Shapes of the inputs of a model's first archive; empty for a model that was not traced."""
    for module in model.modules():
        buffers = dict(module.named_buffers(recurse=False))
        if "artifact" in buffers:
            neff = read_artifact(buffers["artifact"])
            return [shape_of(text) for text in json.loads(neff.attachments[SIGNATURE])]
    return []
