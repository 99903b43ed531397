"""Linear layers without a reshape between rows and batches, which would hide how they are cut."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import torch


class XLAPatchedLinear(torch.autograd.Function):
    """`nn.Linear` without a reshape between rows and batches, which would hide how they are cut."""

    @staticmethod
    def forward(
        ctx: Any, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """input @ weight.T + bias."""
        ctx.save_for_backward(input, weight, bias)
        product = torch.einsum("...n,mn->...m", input, weight)
        return product if bias is None else product + bias

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        """Gradients of all three."""
        input, weight, bias = ctx.saved_tensors
        of_bias = None if bias is None else torch.einsum("...m->m", grad_output)
        return (
            torch.einsum("...m,mn->...n", grad_output, weight),
            torch.einsum("...m,...n->mn", grad_output, input),
            of_bias,
        )


def xla_patched_nn_linear_forward(m: torch.nn.Linear, input: torch.Tensor) -> torch.Tensor:
    """The forward pass of a linear layer by `XLAPatchedLinear`."""
    result: torch.Tensor = XLAPatchedLinear.apply(input, m.weight, m.bias)
    return result


def apply_xla_patch_to_nn_linear(
    module: torch.nn.Module, fn: Callable[..., torch.Tensor] = xla_patched_nn_linear_forward
) -> torch.nn.Module:
    """Let a module's linear layers compute their results by a function."""
    for part in module.modules():
        if isinstance(part, torch.nn.Linear):
            part.forward = MethodType(fn, part)
    return module
