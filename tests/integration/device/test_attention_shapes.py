"""Attention broadcasts batches, heads and masks as on the CPU, with its values and gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

DEVICE, CPU = torch.device("neuron"), torch.device("cpu")
Shape = tuple[int, ...]
SHAPES: dict[str, tuple[Shape, Shape, Shape]] = {
    "one query for all batches": ((1, 4, 2, 8), (5, 4, 3, 8), (5, 4, 3, 8)),
    "one head of queries": ((5, 1, 2, 8), (5, 4, 3, 8), (5, 4, 3, 8)),
    "one batch of keys and values": ((5, 4, 2, 8), (1, 4, 3, 8), (1, 4, 3, 8)),
    "one head of keys and values": ((5, 4, 2, 8), (5, 1, 3, 8), (5, 1, 3, 8)),
    "one batch of values": ((5, 4, 2, 8), (5, 4, 3, 8), (1, 4, 3, 8)),
    "keys of fewer dimensions": ((5, 4, 2, 8), (4, 3, 8), (4, 3, 8)),
}
MASKS: tuple[Shape, ...] = ((2, 3), (1, 3), (4, 2, 3), (5, 4, 2, 3), (5, 1, 1, 3))


def _attended(operands: list[Tensor], mask: Tensor | None, device: torch.device) -> list[Tensor]:
    """The result and the operands' gradients, on the CPU."""
    leaves = [operand.to(device).detach().requires_grad_() for operand in operands]
    placed = None if mask is None else mask.to(device)
    result = F.scaled_dot_product_attention(*leaves, attn_mask=placed)
    result.square().sum().backward()
    return [result.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves if leaf.grad is not None)]


@pytest.mark.parametrize("name", SHAPES)
def test_operands_are_broadcast(name: str) -> None:
    operands = [torch.randn(shape) for shape in SHAPES[name]]
    torch.testing.assert_close(_attended(operands, None, DEVICE), _attended(operands, None, CPU))


@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_masks_are_broadcast(shape: Shape) -> None:
    operands = [torch.randn(5, 4, rows, 8) for rows in (2, 3, 3)]
    mask = torch.randn(shape)
    torch.testing.assert_close(_attended(operands, mask, DEVICE), _attended(operands, mask, CPU))
