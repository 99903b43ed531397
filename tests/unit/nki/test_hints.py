"""Names that change how a kernel runs, or nothing, but never what it computes: a kernel each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from neuron_tools.compat.neuronxcc.nki import compiler as ncc, typing as nt
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.kernel import jit
from neuron_tools.records.program import Engine
from tests.unit.nki.kernels import floats, on_chip, run, to_hbm

X = floats(128, 64)


def shifted(x, steps=range(1, 4)):
    """x + 1 + 2 + 3, one step after the other."""
    tile = on_chip(x)
    for step in steps:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(step))
    return to_hbm(tile)


def test_a_static_range_counts_as_pythons_does():
    kernel = jit(lambda x: shifted(x, nl.static_range(1, 4)))
    np.testing.assert_allclose(kernel(X), X + 6, rtol=1e-6)
    assert list(nl.static_range(6, 0, -2)) == [6, 4, 2]


@dataclass
class Steps(nl.NKIObject):
    count: int

    def last(self):
        return self.count + 1


def test_objects_are_passed_around():
    kernel = jit(lambda x, steps: shifted(x, range(1, steps.last())))
    np.testing.assert_allclose(kernel(X, Steps(3)), X + 6, rtol=1e-6)


@pytest.mark.parametrize(
    "hint", ["enable_stack_allocator", "skip_middle_end_transformations", "force_auto_alloc"]
)
def test_decorators_change_no_value(hint):
    plain = getattr(ncc, hint)(shifted)
    with_options = getattr(ncc, hint)(log_level=1)(shifted)
    for kernel in (plain, with_options):
        np.testing.assert_allclose(jit(kernel)(X), X + 6, rtol=1e-6)


@pytest.mark.parametrize("block", [ncc.no_reorder, ncc.multi_buffer, ncc.allocation_scope, nl.no_reorder])
def test_blocks_change_no_value(block):
    @jit
    def kernel(x):
        with block():
            return shifted(x)

    np.testing.assert_allclose(kernel(X), X + 6, rtol=1e-6)


@pytest.mark.parametrize(
    "annotation", [nt.tensor, nt.mutable_tensor, nt.mutable, nt.immutable, nt.tensor[128, 64]]
)
def test_annotations_change_no_value(annotation):
    def kernel(x):
        return shifted(x)

    kernel.__annotations__ = {"x": annotation}
    np.testing.assert_allclose(jit(kernel)(X), X + 6, rtol=1e-6)


@pytest.mark.parametrize("mode", list(nisa.dge_mode))
def test_any_maker_of_descriptors_moves_the_same_bytes(mode):
    @jit
    def kernel(x):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=tile, src=x, dge_mode=mode)
        nisa.dma_copy(dst=result, src=tile, dge_mode=mode)
        return result

    np.testing.assert_array_equal(kernel(X), X)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (nisa.vector_engine, Engine.VECTOR),
        (nisa.scalar_engine, Engine.SCALAR),
        (nisa.gpsimd_engine, Engine.GPSIMD),
        (nisa.unknown_engine, None),
    ],
)
def test_the_engine_that_is_named_computes(engine, expected):
    def body(x):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(result, x, engine=engine)
        return result

    np.testing.assert_array_equal(run(body, X), X)
    assert engine.chosen is expected


def test_a_transpose_can_be_asked_of_the_tensor_engine():
    square = floats(64, 64)

    def body(x):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.psum)
        nisa.nc_transpose(result, x, engine=nisa.tensor_engine)
        return result

    np.testing.assert_allclose(run(body, square), square.T, rtol=1e-6)
