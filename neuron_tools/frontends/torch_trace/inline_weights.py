"""Weights that are part of an archive: tensors to bytes, and back without a copy."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence

import torch

from neuron_tools.frontends.torch_trace.shapes import shape_of
from neuron_tools.neff import Neff

INLINE_WEIGHTS = "inline_weights.json"
"""Attachment of an archive with weights: for each that is passed, which one it is, its type and shape."""


def distinct(weights: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[int]]:
    """The different tensors among weights, which may share their memory, and for each weight which it is."""
    numbers: dict[tuple[object, ...], int] = {}
    found: list[torch.Tensor] = []
    places = []
    for weight in weights:
        key = (weight.data_ptr(), weight.dtype, weight.shape, weight.stride())
        if key not in numbers or not weight.numel():
            numbers[key] = len(found)
            found.append(weight)
        places.append(numbers[key])
    return found, places


def bytes_of(weight: torch.Tensor) -> memoryview:
    """A weight's elements in order; its own memory where they lie like that."""
    flat = weight.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy())


def inline_weights(neff: Neff) -> list[torch.Tensor]:
    """The weights of an archive in the order in which they are passed; empty where it has none.

    They are views of the archive's bytes: nobody may write into them.
    """
    places: list[tuple[int, str]] = json.loads(neff.attachments.get(INLINE_WEIGHTS, b"[]"))
    return [_tensor(neff.weights[number], text) for number, text in places]


def _tensor(data: memoryview, text: str) -> torch.Tensor:
    dtype, shape = getattr(torch, text[: text.index("[")]), shape_of(text)
    if not len(data):
        return torch.empty(shape, dtype=dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given buffer is not writable")
        return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape)


def read_artifact(artifact: torch.Tensor) -> Neff:
    """The archive whose bytes a traced model keeps; it is not copied.

    Raises:
        NeffError: It is damaged, or of a newer version.
    """
    return Neff.from_bytes(memoryview(artifact.numpy()), "The traced model's artifact")
