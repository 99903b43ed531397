"""`NKI_PRECISE_FP=0`: narrow floats are stored as float32, so that nothing is rounded to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from neuron_tools.compat.neuronxcc import nki as older
from neuron_tools.compat.nki import isa as nisa, language as nl
from neuron_tools.nki.kernel import jit

THIRD = 1 / 3


def through(narrow: Any) -> Any:
    """A kernel that keeps thirds in tiles of a narrow type, and writes one row of them into its argument."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray((128, 64), narrow, nl.sbuf)
        nisa.memset(tile, 1)
        nisa.tensor_scalar(tile, tile, nl.multiply, THIRD)
        result = nl.ndarray((128, 64), nl.float32, nl.shared_hbm)
        again = nl.ndarray((128, 64), narrow, nl.shared_hbm)
        nisa.dma_copy(result, tile)
        nisa.dma_copy(again, tile)
        nisa.dma_copy(x[0:1], tile[0:1])
        return result, again

    return jit(kernel)


@pytest.mark.parametrize("narrow", [nl.bfloat16, nl.float8_e4m3, nl.float8_e5m2])
def test_what_passes_through_narrow_tiles_is_not_rounded(
    narrow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded = np.float32(np.asarray(THIRD).astype(narrow.dtype))
    x = np.zeros((128, 64), narrow.dtype)
    result, again = through(narrow)(x)
    assert (result == rounded).all()
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    result, again = through(narrow)(x)
    assert (result == np.float32(THIRD)).all()
    assert again.dtype == narrow.dtype
    assert (again.astype(np.float32) == rounded).all()
    assert (x[0].astype(np.float32) == rounded).all()
    assert (x[1] == 0).all()


def test_tensors_of_pytorch_keep_their_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    x = torch.zeros((128, 64), dtype=torch.bfloat16)
    _, again = through(nl.bfloat16)(x)
    wanted = torch.tensor(THIRD).to(torch.bfloat16)
    assert again.dtype == torch.bfloat16
    assert bool((again == wanted).all())
    assert bool((x[0] == wanted).all())


def test_bits_of_what_is_not_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(x: Any) -> Any:
        tile = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf)
        bits = nl.ndarray((128, 64), nl.uint16, nl.shared_hbm)
        nisa.dma_copy(tile, x)
        nisa.dma_copy(bits, tile.view(nl.uint16))
        return bits

    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    x = np.ones((128, 64), nl.bfloat16.dtype)
    assert (jit(kernel)(x) == x.view(np.uint16)).all()


def test_scattered_rows_are_not_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(x: Any) -> Any:
        result = nl.ndarray((8, 64), nl.float32, nl.shared_hbm)
        held, rows = nl.ndarray((8, 64), nl.bfloat16, nl.hbm), nl.ndarray((8, 1), nl.int32, nl.sbuf)
        tile = nl.ndarray((8, 64), nl.float32, nl.sbuf)
        nisa.iota(rows, [[1, 1]], 0, 1)
        nisa.memset(tile, THIRD)
        nisa.dma_copy(held.vector_select(0, rows), tile)
        nisa.dma_copy(result, held)
        return result

    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    assert (jit(kernel)(np.ones((8, 64), np.float32)) == np.float32(THIRD)).all()


def test_an_argument_is_widened_once_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(x: Any) -> Any:
        seen, tile = nl.ndarray((2, 128, 64), nl.float32, nl.shared_hbm), nl.ndarray((128, 64), nl.float32)
        part = x[0:128]
        nisa.memset(tile, THIRD)
        for step in range(2):
            if nl.program_id(0) == 0:
                nisa.dma_copy(seen[step], part)  # the second time by a view that was read before
            nisa.core_barrier(x, (0, 1))
            if step == 0 and nl.program_id(0) == 1:
                nisa.dma_copy(x[0:1], tile[0:1])
            nisa.core_barrier(x, (0, 1))
        return seen

    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    x = np.ones((128, 64), nl.bfloat16.dtype)
    seen = jit(kernel)[2](x)
    assert (seen[0] == 1).all()
    assert (seen[1, 0] == np.float32(THIRD)).all()
    assert (seen[1, 1:] == 1).all()
    assert (x[0] == np.asarray(THIRD).astype(x.dtype)).all()


def test_the_older_dialects_simulator_does_not_round_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def thirds(x: Any) -> Any:
        result = older.language.ndarray(x.shape, dtype=x.dtype, buffer=older.language.shared_hbm)
        third = older.language.multiply(older.language.load(x), THIRD, dtype=older.language.bfloat16)
        older.language.store(result, third)
        return result

    x = np.ones((128, 4), np.float32)
    rounded = np.float32(np.asarray(THIRD).astype(nl.bfloat16.dtype))
    kernel = older.jit(thirds)
    simulators = [older.jit(thirds, mode="simulation"), lambda x: older.simulate_kernel(kernel, x)]
    assert (kernel(x) == rounded).all()
    assert all((simulator(x) == np.float32(THIRD)).all() for simulator in simulators)
    monkeypatch.setenv("NKI_PRECISE_FP", "1")
    assert all((simulator(x) == rounded).all() for simulator in simulators)
