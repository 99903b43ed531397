"""`torch_neuronx.xla_impl.ops`: operators by AWS's names, and the older decorator for kernels."""

from __future__ import annotations

import torch

from neuron_tools.compat.torch_neuronx.nki_jit import nki_jit
from neuron_tools.compat.torch_neuronx.xla_impl.base import xla_hlo_call

__all__ = ["Argmax", "ConcatenateOp", "RmsNorm", "Softmax", "TopK", "nki_jit", "xla_hlo_call"]


class TopK:
    """The largest elements along a dimension."""

    @staticmethod
    def apply(tensor: torch.Tensor, k: int, dim: int = -1) -> tuple[torch.Tensor, torch.Tensor]:
        """Values and indices."""
        values, indices = torch.topk(tensor, k, dim=dim)
        return values, indices


class Argmax:
    """Where the largest element along a dimension is."""

    @staticmethod
    def apply(tensor: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
        """Indices."""
        return torch.argmax(tensor, dim=dim, keepdim=keepdim)


class Softmax:
    """Softmax along a dimension."""

    @staticmethod
    def apply(tensor: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Probabilities."""
        return torch.softmax(tensor, dim)


class RmsNorm:
    """Values over the root of the mean of their squares along a dimension, times a weight for each."""

    @staticmethod
    def apply(tensor: torch.Tensor, weight: torch.Tensor, eps: float, dim: int) -> torch.Tensor:
        """Normalized values, of the tensor's shape; the weight has the dimension's size."""
        moved = tensor.movedim(dim, -1)
        return torch.nn.functional.rms_norm(moved, moved.shape[-1:], weight, eps).movedim(-1, dim)


class ConcatenateOp:
    """Tensors one after the other along a dimension."""

    @staticmethod
    def apply(*tensors: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """All of them as one."""
        return torch.cat(tensors, dim)
