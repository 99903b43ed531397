"""Handles of instructions: dependencies that a kernel asks for itself."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.kernel import jit
from neuron_tools.nki.timing import time_kernel
from neuron_tools.nki.tracer import Recording

SHAPE = (128, 512)


def independent(tie):
    """A kernel whose two instructions, on two engines, share nothing; `tie(first, second)` may order them."""

    @jit
    def kernel(x):
        result = nl.ndarray(SHAPE, dtype=x.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray(SHAPE, dtype=x.dtype, buffer=nl.sbuf) for _ in range(4)]
        nisa.dma_copy(dst=tiles[0], src=x)
        nisa.dma_copy(dst=tiles[1], src=x)
        first = nisa.tensor_tensor(tiles[2], tiles[0], tiles[0], nl.add)
        second = nisa.activation(tiles[3], op=nl.exp, data=tiles[1])
        tie(first, second)
        nisa.dma_copy(dst=result, src=tiles[3])
        return result

    return kernel


def overlap(tie):
    """Nanoseconds during which both instructions are under way."""
    timing = time_kernel(independent(tie), (np.ones(SHAPE, np.float32),), {})
    times, source = timing.simulations[0], timing.kernels[0].source
    rows = [source.calls.index(name) for name in ("tensor_tensor", "activation")]
    first, second = (np.flatnonzero(source.call_kind[source.call] == row)[0] for row in rows)
    return (
        min(times.end_ps[first], times.end_ps[second]) - max(times.start_ps[first], times.start_ps[second])
    ) / 1000


def test_a_runtime_dependency_makes_an_instruction_wait():
    assert overlap(lambda first, second: None) > 0
    assert overlap(lambda first, second: second.depends_on(first, kind=nisa.dependency.runtime)) <= 0
    assert overlap(lambda first, second: second.depends_on(first)) <= 0


def test_a_dependency_on_the_order_of_issue_lets_engines_overlap():
    assert overlap(lambda first, second: second.depends_on(first, kind=nisa.dependency.schedule)) > 0


def test_the_handle_is_given_back_for_chains():
    def tie(first, second):
        assert isinstance(second, nisa.NkiInstruction)
        assert second.depends_on(first).depends_on(first) is second

    time_kernel(independent(tie), (np.ones(SHAPE, np.float32),), {})


def test_an_earlier_instruction_cannot_wait_for_a_later_one():
    with pytest.raises(NkiValidationError, match=r"test_instruction.py:\d+ in tie.*issued before it"):
        overlap(tie)


def tie(first, second):
    first.depends_on(second)


@pytest.mark.parametrize("values_only", [True, False])
def test_values_need_no_recording(values_only):
    x = np.linspace(0, 1, 128 * 512, dtype=np.float32).reshape(SHAPE)
    found = independent(lambda first, second: second.depends_on(first)).run(
        x, recording=Recording.NOTHING if values_only else Recording.ALL
    )
    np.testing.assert_allclose(found.outputs, np.exp(x), rtol=1e-6)
