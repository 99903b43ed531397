"""`torch_neuronx.xla_impl.ops`: operators that libraries for Neuron call by AWS's names."""

import pytest
import torch

from neuron_tools import compat


@pytest.fixture(scope="module")
def ops():
    uninstall = compat.install()
    import torch_neuronx.xla_impl.ops as operators

    yield operators
    uninstall()


VALUES = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dim", [1, 2])
def test_rows_are_normalized_along_a_dimension(ops, dim):
    size = VALUES.shape[dim]
    weight = torch.arange(1.0, 1.0 + size)
    roots = (VALUES.square().mean(dim, keepdim=True) + 1e-6).sqrt()
    shape = [size if axis == dim else 1 for axis in range(3)]
    torch.testing.assert_close(
        ops.RmsNorm.apply(VALUES, weight, 1e-6, dim), VALUES / roots * weight.view(shape)
    )


def test_tensors_are_joined_along_a_dimension(ops):
    assert torch.equal(ops.ConcatenateOp.apply(VALUES[:, :1], VALUES[:, 1:], dim=1), VALUES)
