"""Two cores of one launch side by side: in which order they write, and what they wait for."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.kernel import Kernel
from tests.unit.nki.kernels import floats, on_chip, tile

A = floats(128, 32)


def on_two_cores(kernel, *arrays):
    return Kernel(kernel, core=hardware.get("trn2"))[2](*arrays)


@pytest.mark.filterwarnings("ignore::neuron_tools.nki.core_race.RaceWarning")
def test_neither_core_clears_what_the_other_has_filled():
    """As blockwise products of AWS's library do without a barrier: the chip clears long before it fills."""

    def kernel(a):
        core = nl.program_id(0)
        result = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        zeros, part = tile((128, 32)), on_chip(a)
        nisa.memset(zeros, 0)
        for half in range(2):
            nisa.dma_copy(result[half * 128 : (half + 1) * 128], zeros)
        nisa.dma_copy(result[core * 128 : (core + 1) * 128], part)
        return result

    np.testing.assert_array_equal(on_two_cores(kernel, A), np.concatenate([A, A]))


def test_cores_that_wait_for_each_other_in_another_order_are_told():
    def kernel(a):
        part, other = on_chip(a), tile((128, 32))
        result = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            nisa.core_barrier(result, (0, 1))
        else:
            nisa.sendrecv(src=part, dst=other, send_to_rank=0, recv_from_rank=0)
        nisa.dma_copy(result, part)
        return result

    with pytest.raises(NkiValidationError, match=r"core 0 at a barrier, and none can go on") as caught:
        on_two_cores(kernel, A)
    assert caught.value.where.startswith(__file__)


def test_the_mistake_of_a_core_ends_the_other():
    def kernel(a):
        result = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        if nl.program_id(0) == 1:
            nisa.dma_copy(result, a[0:64])
        nisa.core_barrier(result, (0, 1))
        return result

    with pytest.raises(NkiValidationError, match="moves as many elements"):
        on_two_cores(kernel, A)
