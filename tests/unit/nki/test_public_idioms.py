"""Ways of public kernels and of their tests that differ from the references."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from neuron_tools.compat.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError, OutOfBoundsError
from neuron_tools.nki.host_arrays import allclose, host_dtype, static_cast
from tests.unit.nki.kernels import floats, on_chip, run_raw, tile, to_hbm

A = floats(128, 64)
OLDER = import_module("neuron_tools.compat.neuronxcc.nki.language")


def test_a_copy_that_names_a_type():
    def kernel(x):
        copied = tile((128, 64), nl.bfloat16)
        nisa.tensor_copy(dst=copied, src=on_chip(x), dtype=nl.bfloat16)
        return to_hbm(copied)

    assert allclose(run_raw(kernel, A).outputs, A, rtol=1e-2)


def test_packed_arrays_go_in_and_come_out():
    packed = static_cast(A, nl.float8_e4m3fn_x4)
    run = run_raw(lambda x: to_hbm(on_chip(x)), packed, target="trn3")
    assert run.outputs.dtype == host_dtype(nl.float8_e4m3fn_x4)
    assert np.array_equal(run.outputs, packed)


@pytest.mark.parametrize(("loop", "expected"), [("affine_range", 1), ("static_range", 4)])
def test_integers_of_an_older_loop_that_is_traced_once_begin_as_before(loop: str, expected: int):
    grown: list[int] = []

    def kernel(x):
        address = 0
        for _ in getattr(OLDER, loop)(4):
            address += 1
            grown.append(address)
        assert address == expected
        return to_hbm(on_chip(x))

    run_raw(kernel, A, older=True)
    assert grown == ([1, 1, 1, 1] if expected == 1 else [1, 2, 3, 4])


def test_integers_of_a_present_loop_grow():
    def kernel(x):
        count = 0
        for _ in nl.affine_range(4):
            count += 1
        assert count == 4
        return to_hbm(on_chip(x))

    run_raw(kernel, A)


def test_an_argument_of_one_element_is_given():
    def kernel(x, index=None):
        assert index
        return to_hbm(on_chip(x))

    run_raw(kernel, A, np.zeros((1, 1), np.int32))


@pytest.mark.parametrize(
    "value", [lambda x: x[0, 0], lambda x: x[0:1, 0:1], lambda x: OLDER.load(x[0, 0]) > 0]
)
def test_whether_an_element_is_true_is_refused_at_the_line(value):
    def kernel(x):
        if value(x):
            return to_hbm(on_chip(x))
        return None

    with pytest.raises(NkiValidationError, match=r"test_public_idioms.*whether an element is true"):
        run_raw(kernel, A, older=True)


def far_row(index: int = 100000) -> Any:
    register = nisa.register_alloc()
    nisa.register_move(register, index)
    return register


@pytest.mark.parametrize(
    "body",
    [
        lambda x: nisa.tensor_copy(tile((1, 64)), on_chip(x).ap([[64, 1], [1, 64]], scalar_offset=far_row())),
        lambda x: nisa.memset(on_chip(x).ap([[64, 1], [1, 64]], scalar_offset=far_row()), 0.0),
        lambda x: nisa.dma_copy(tile((1, 64)), x.ap([[64, 1], [1, 64]], scalar_offset=far_row())),
        lambda x: nisa.dma_transpose(tile((64, 1)), x.ap([[64, 1], [1, 64]], scalar_offset=far_row())),
        lambda x: nisa.dma_compute(tile((1, 64)), [x.ap([[64, 1], [1, 64]], scalar_offset=far_row())]),
    ],
)
def test_offsets_out_of_bounds_are_index_errors_at_the_line(body):
    with pytest.raises(IndexError, match="out of bounds") as caught:
        run_raw(lambda x: body(x), A)
    assert isinstance(caught.value, OutOfBoundsError)
    assert __file__ in caught.value.where


def test_a_dma_leaves_out_what_is_out_of_bounds():
    def kernel(x):
        held = tile((1, 64))
        nisa.memset(held, 5.0)
        source = x.ap([[64, 1], [1, 64]], scalar_offset=far_row())
        nisa.dma_copy(held, source, oob_mode=nisa.oob_mode.skip)
        return to_hbm(held)

    assert (run_raw(kernel, A).outputs == 5).all()


def test_modules_that_public_tests_import():
    frontend = import_module("neuron_tools.compat.nki.compiler.frontend")
    assert issubclass(frontend.TracerFrontend, frontend.NKIFrontend)
    driver = import_module("neuron_tools.compat.nki.compiler.ncc_driver")
    assert driver.CompileOptions().output_path == "file.neff"
    support = "neuron_tools.compat.neuronxcc.starfish.support"
    assert import_module(f"{support}.dtype").static_cast is static_cast
    assert import_module(f"{support}.util").allclose(A, A + 1e-9, verbose=1)
    assert import_module("neuron_tools.compat.neuronxcc.nki").par_dim(8) == 8
