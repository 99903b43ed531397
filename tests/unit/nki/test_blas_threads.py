"""Threads of NumPy's products in kernels and around them."""

from __future__ import annotations

import pytest
from threadpoolctl import ThreadpoolController

from neuron_tools import hardware
from neuron_tools.nki import blas_threads, isa as nisa, language as nl
from neuron_tools.nki.kernel import Kernel
from tests.unit.nki.kernels import floats, on_chip, tile


@pytest.fixture
def threads():
    """How many threads a product has now; two outside of kernels."""
    blas_threads._libraries.cache_clear()  # another test may have loaded SciPy, which brings one of its own
    libraries = ThreadpoolController().select(user_api="blas")
    assert libraries, "NumPy has no library for products whose threads can be set"
    with libraries.limit(limits=2):
        yield lambda: max(library["num_threads"] for library in libraries.info())


def test_blocks_within_blocks_give_the_threads_back_at_the_end_of_the_first(threads):
    with blas_threads.one_thread():
        with blas_threads.one_thread():
            assert threads() == 1
        assert threads() == 1
    assert threads() == 2


def test_a_block_that_fails_gives_the_threads_back(threads):
    with pytest.raises(ValueError, match="inside"), blas_threads.one_thread():
        raise ValueError("inside")
    assert threads() == 2


@pytest.mark.parametrize("cores", [1, 2])
def test_kernels_compute_with_one_thread(threads, cores):
    seen = []

    def kernel(a):
        seen.append(threads())
        out = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        part = tile((128, 32))
        nisa.tensor_copy(part, on_chip(a))
        if nl.program_id(0) == 0:
            nisa.dma_copy(out, part)
        return out

    Kernel(kernel, core=hardware.get("trn2"))[cores].run(floats(128, 32))
    assert seen == [1] * cores
    assert threads() == 2
