import pytest
import torch

from neuron_tools.frontends.deepspeed_accelerator import _multi_tensor_adam


def step(*, adam_w_mode, bias_correction=1, count=3):
    torch.manual_seed(0)
    gradient, parameter, first = torch.randn(4), torch.randn(4), torch.randn(4)
    second = torch.rand(4)
    lists = [[each] for each in (gradient, parameter.clone(), first.clone(), second.clone())]
    _multi_tensor_adam(1, None, lists, 0.1, 0.9, 0.99, 1e-8, count, adam_w_mode, bias_correction, 0.01)
    return gradient, parameter, first, second, lists[1][0]


def expected(gradient, parameter, first, second, corrections):
    first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
    return parameter - 0.1 * (first / corrections[0]) / ((second / corrections[1]).sqrt() + 1e-8)


@pytest.mark.parametrize(("bias_correction", "corrections"), [(1, (1 - 0.9**3, 1 - 0.99**3)), (0, (1, 1))])
def test_a_step_of_adamw_decays_the_parameter(bias_correction, corrections):
    gradient, parameter, first, second, found = step(adam_w_mode=1, bias_correction=bias_correction)
    decayed = parameter * (1 - 0.1 * 0.01)
    torch.testing.assert_close(found, expected(gradient, decayed, first, second, corrections))


def test_a_step_of_adam_decays_by_the_gradient():
    gradient, parameter, first, second, found = step(adam_w_mode=0)
    corrections = (1 - 0.9**3, 1 - 0.99**3)
    torch.testing.assert_close(
        found, expected(gradient + 0.01 * parameter, parameter, first, second, corrections)
    )
