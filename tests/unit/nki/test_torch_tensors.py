from __future__ import annotations

import pytest

from neuron_tools.nki import language as nl
from neuron_tools.nki.kernel import jit

torch = pytest.importorskip("torch")


@jit
def double(a):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(result, nl.multiply(nl.load(a), 2.0))
    return result


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float8_e5m2", "int32", "uint8"])
def test_tensors_go_in_and_come_out_with_their_type(name):
    dtype = getattr(torch, name)
    given = torch.arange(24).reshape(4, 6).to(dtype)
    found = double(given)
    assert (found.dtype, found.shape) == (dtype, given.shape)
    assert torch.equal(found.float(), (given.float() * 2).to(dtype).float())


def test_64_bit_types_become_what_the_chip_has():
    assert double(torch.ones(2, 3, dtype=torch.float64)).dtype is torch.float32


def test_views_are_read_as_they_are():
    given = torch.arange(12.0).reshape(3, 4).T
    assert torch.equal(double(given), given * 2)
