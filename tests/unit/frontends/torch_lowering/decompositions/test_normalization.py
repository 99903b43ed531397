import pytest
import torch

from tests.unit.frontends.lowered import lowered


@pytest.mark.parametrize("dim", [0, 2])
def test_gradients_of_a_normed_weight_are_those_of_autograd(dim):
    direction = torch.randn(8, 4, 3, requires_grad=True)
    others = [d for d in range(3) if d != dim]
    size = torch.randn(*(direction.shape[d] if d == dim else 1 for d in range(3)), requires_grad=True)
    norms = direction.norm(dim=others, keepdim=True)
    gradient = torch.randn(8, 4, 3)
    expected = torch.autograd.grad(direction * (size / norms), (direction, size), gradient)
    found = lowered(
        torch.ops.aten._weight_norm_interface_backward.default,
        gradient, direction.detach(), size.detach(), norms.detach(), dim,
    )  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
