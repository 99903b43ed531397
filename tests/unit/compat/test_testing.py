"""`torch_neuronx.testing` compares values of any device by the largest that is expected."""

import pytest
import torch

from neuron_tools import compat


@pytest.fixture(scope="module")
def testing():
    uninstall = compat.install()
    import torch_neuronx

    yield torch_neuronx.testing
    uninstall()


@pytest.mark.parametrize(("error", "passes"), [(0.9, True), (1.1, False)])
def test_a_small_value_may_be_as_far_off_as_a_large_one(testing, error, passes):
    expected = torch.tensor([1.0, 100.0])
    actual = expected + torch.tensor([error, 0.0])
    summary = testing.neuron_allclose(actual, expected, rtol=0.01, atol=0.0)
    assert (summary.allclose, summary.max_abs_error) == (passes, pytest.approx(error))
    assert testing.custom_allclose(expected, actual, 0.0, 0.01) == (passes, pytest.approx(error / 100))


def test_a_value_that_is_no_number_is_not_close(testing):
    assert not testing.neuron_allclose(torch.tensor([float("nan")]), torch.ones(1)).allclose


def test_values_on_the_device_are_compared_with_those_on_the_host(testing):
    expected = {"logits": (torch.ones(2), torch.zeros(3))}
    actual = {"logits": (torch.ones(2, device="neuron"), torch.zeros(3))}
    testing.assert_close(actual, expected)
    with pytest.raises(AssertionError, match="Mismatched elements: 3 / 3"):
        testing.assert_close(actual, {"logits": (torch.ones(2), torch.ones(3))})
