from itertools import cycle

import pytest
import torch

from tests.unit.frontends.lowered import lowered

aten = torch.ops.aten
# One element, a product, the longest product, two steps, a long prime, twice a long prime.
LENGTHS = (1, 2, 7, 128, 400, 131, 262)


def complex_numbers(*shape):
    return torch.complex(torch.randn(*shape), torch.randn(*shape))


def assert_close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-6 * float(expected.abs().max()))


@pytest.mark.parametrize(("length", "forward"), zip(LENGTHS, cycle((True, False))))
def test_a_complex_transform_of_any_length_has_the_values_of_the_cpu(length, forward):
    data = complex_numbers(3, length)
    (found,) = lowered(aten._fft_c2c.default, data, [1], 1, forward)
    assert_close(found, aten._fft_c2c(data, [1], 1, forward))


@pytest.mark.parametrize(("length", "onesided"), zip(LENGTHS, cycle((True, False))))
def test_a_real_transform_gives_half_or_all_of_the_spectrum(length, onesided):
    data = torch.randn(2, length)
    (found,) = lowered(aten._fft_r2c.default, data, [1], 0, onesided)
    assert_close(found, aten._fft_r2c(data, [1], 0, onesided))


@pytest.mark.parametrize("length", LENGTHS)
def test_the_way_back_ignores_the_imaginary_parts_that_real_data_do_not_have(length):
    spectrum = complex_numbers(2, length // 2 + 1)
    (found,) = lowered(aten._fft_c2r.default, spectrum, [1], 2, length)
    assert_close(found, aten._fft_c2r(spectrum, [1], 2, length))


def test_transforms_go_along_several_dimensions_in_any_order():
    data = torch.randn(3, 6, 8)
    (found,) = lowered(aten._fft_r2c.default, data, [2, 0], 1, True)
    assert_close(found, aten._fft_r2c(data, [2, 0], 1, True))
    spectrum = complex_numbers(3, 6, 5)
    (found,) = lowered(aten._fft_c2r.default, spectrum, [0, 1, 2], 2, 8)
    assert_close(found, aten._fft_c2r(spectrum, [0, 1, 2], 2, 8))
