"""A compiled graph computes with the layouts that tracing foresaw, whatever layouts CPU kernels choose."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_compile.foreseen_layout import laid_out


class NormalisedAttention(nn.Module):
    """Tokens that become channels, then a group norm and a convolution, as in a decoder of pictures."""

    def __init__(self):
        super().__init__()
        self.tokens, self.norm = nn.Linear(16, 16), nn.GroupNorm(4, 16)
        self.convolution = nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, value):
        tokens = self.tokens(value.flatten(2).transpose(1, 2))
        tokens = nn.functional.scaled_dot_product_attention(*[tokens[:, None]] * 3)[:, 0]
        mixed = tokens.transpose(-1, -2).reshape(value.shape) + value
        return self.convolution(self.norm(mixed))


def gradients(model, value, call):
    call(value).square().mean().backward()
    return {name: parameter.grad.cpu() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_of_a_group_norm_of_tokens_are_the_cpus(batch, dynamic):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, value = NormalisedAttention(), torch.randn(batch, 16, 6, 6)
    device_model = copy.deepcopy(model).to("neuron")
    expected = gradients(model, value, model)
    found = gradients(
        device_model, value.to("neuron"), torch.compile(device_model, backend="neuron", dynamic=dynamic)
    )
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function", [lambda value: value[value[:, 0] > 0] * 2, lambda value: torch.nonzero(value > 0).float()]
)
def test_sizes_that_only_values_tell_are_no_obstacle(function):
    torch._dynamo.reset()
    value = torch.tensor([[1.0, 2.0], [-1.0, 3.0], [4.0, -5.0]])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        found = torch.compile(function, backend="neuron", fullgraph=True)(value.to("neuron"))
    assert torch.equal(found.cpu(), function(value))


def test_a_tensor_that_is_laid_out_so_is_left_alone():
    tensor = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert laid_out(tensor, (0, 2, 3, 1)) is tensor


def test_another_layout_is_made_with_the_same_values():
    tensor = torch.randn(2, 3, 4, 5)
    made = laid_out(tensor, (0, 2, 3, 1))
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(made, tensor)


def test_strides_of_one_element_are_mended_without_a_copy():
    tensor = torch.randn(3, 4).as_strided((1, 3, 4), (1, 4, 1))
    made = laid_out(tensor, (0, 1, 2))
    assert made.stride() == (12, 4, 1)
    assert made.data_ptr() == tensor.data_ptr()
