"""What PyTorch knows of a kernel call: the operator's name, and the form of each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki.abstract import Form
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.torch_tensors import TorchAdapter

NAMESPACE, NAME = "neuron_tools", "nki_kernel"
_ADAPTER = TorchAdapter()


def forms_of(tensors: Sequence[Any]) -> tuple[Form, ...]:
    """Shape and element type of each tensor as a kernel sees it."""
    return tuple((tuple(map(int, tensor.shape)), str(as_dtype(_ADAPTER.dtype(tensor)))) for tensor in tensors)
