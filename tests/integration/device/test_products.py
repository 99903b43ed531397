"""Large products of narrow types are summed in fp32 and rounded once, as the Tensor engine does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

DEVICE = torch.device("neuron")
NARROW = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
Product = Callable[..., Tensor]
CONVOLUTION = ((2, 64, 34, 34), (64, 64, 3, 3), (64,))
PRODUCTS: dict[str, tuple[Product, tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((330, 700), (700, 450))),
    "addmm": (torch.addmm, ((450,), (330, 700), (700, 450))),
    "bmm": (torch.bmm, ((3, 330, 300), (3, 300, 450))),
    "baddbmm": (torch.baddbmm, ((3, 330, 450), (3, 330, 300), (3, 300, 450))),
    "conv2d": (F.conv2d, CONVOLUTION),
}


@NARROW
@pytest.mark.parametrize("name", PRODUCTS)
def test_narrow_product_is_the_fp32_one_rounded(name: str, dtype: torch.dtype) -> None:
    product, shapes = PRODUCTS[name]
    operands = _operands(shapes, dtype)
    result = product(*(operand.to(DEVICE) for operand in operands))
    expected = product(*(operand.float() for operand in operands)).to(dtype)
    assert result.dtype == dtype
    assert torch.equal(result.cpu(), expected)


@NARROW
def test_gradients_of_a_narrow_convolution_are_the_fp32_ones_rounded(dtype: torch.dtype) -> None:
    operands = _operands(CONVOLUTION, dtype)
    gradients = _gradients(F.conv2d, [operand.to(DEVICE) for operand in operands])
    expected = _gradients(F.conv2d, [operand.float() for operand in operands])
    for gradient, other in zip(gradients, expected, strict=True):
        assert torch.equal(gradient.cpu(), other.to(dtype))


def test_gradients_of_narrow_attention_are_near_the_fp32_ones() -> None:
    operands = _operands(((1, 2, 1024, 64),) * 3, torch.bfloat16)
    gradients = _gradients(F.scaled_dot_product_attention, [operand.to(DEVICE) for operand in operands])
    expected = _gradients(F.scaled_dot_product_attention, [operand.float() for operand in operands])
    for gradient, other in zip(gradients, expected, strict=True):
        assert gradient.dtype == torch.bfloat16
        torch.testing.assert_close(gradient.cpu().float(), other, rtol=0.02, atol=0.02)


@NARROW
def test_a_small_product_has_the_cpus_bits(dtype: torch.dtype) -> None:
    left, right = _operands(((33, 70), (70, 45)), dtype)
    assert torch.equal(torch.mm(left.to(DEVICE), right.to(DEVICE)).cpu(), torch.mm(left, right))


def test_types_that_differ_are_refused_as_on_the_cpu() -> None:
    left, right = _operands(((512, 512), (512, 512)), torch.bfloat16)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(left.to(DEVICE), right.float().to(DEVICE))


def _operands(shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def _gradients(product: Product, operands: list[Tensor]) -> list[Tensor]:
    leaves = [operand.detach().requires_grad_() for operand in operands]
    product(*leaves).float().sum().backward()
    return [leaf.grad for leaf in leaves if leaf.grad is not None]
