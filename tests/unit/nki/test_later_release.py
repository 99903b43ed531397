"""What NKI 0.7 added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.compat.nki import collectives as ncc, isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.lowering import lower
from neuron_tools.records.program import Engine
from tests.unit.nki.kernels import floats, on_chip, run_raw, tile, to_hbm

A = floats(128, 64)


def scalar(value: int, dtype: Any = nl.int32) -> Any:
    held = tile((1, 1), dtype)
    nisa.memset(held, value)
    return nisa.scalar_load(held)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (nl.int32, 100000, 1410065408),  # the reference's own example of wrapping
        (nl.int64, 100000, 10000000000),
    ],
)
def test_scalars_compute_at_their_own_width(dtype: Any, value: int, expected: int):
    def kernel(x):
        loaded = scalar(value, dtype)
        stored = tile((1, 1), dtype)
        nisa.scalar_store(stored, loaded * loaded)
        return to_hbm(stored)

    assert run_raw(kernel, A).outputs.tolist() == [[expected]]


def test_scalars_address_and_bound_loops():
    def kernel(x):
        row = tile((1, 64))
        nisa.memset(row, 0.0)
        more = tile((1, 64))

        def body(i):
            nisa.dma_copy(more, x.ap([[64, 1], [1, 64]], scalar_offset=scalar(5) * 2 - 7))
            nisa.tensor_tensor(row, row, more, nl.add)

        nl.fori_loop(0, scalar(1) + 2, body)
        return to_hbm(row)

    assert np.allclose(run_raw(kernel, A).outputs[0], 3 * A[3], rtol=1e-6)


REFUSED = {
    "a store of a number": (
        "takes an NkiScalar.*memset",
        lambda x: nisa.scalar_store(tile((1, 1), nl.int32), 5),
    ),
    "a store at another width": (
        "at its own width",
        lambda x: nisa.scalar_store(tile((1, 1), nl.int64), scalar(5)),
    ),
    "a load of a float": ("int32 or int64, got float32", lambda x: scalar(1, nl.float32)),
    "widths that differ": ("do not mix; load both", lambda x: scalar(1) + scalar(1, nl.int64)),
    "a division": (r"\+, - and \* only", lambda x: scalar(7) // 2),
    "a decision": ("known on the device only", lambda x: 1 if scalar(1) else 0),
    "a comparison that is used": ("cannot be used", lambda x: int(scalar(1) < 2)),
    "a comparison of 64 bits": ("cannot be compared", lambda x: scalar(1, nl.int64) < 2),
    "a loop of 64 bits": (
        "loop's bound takes a scalar of int32",
        lambda x: nl.fori_loop(0, scalar(3, nl.int64), id),
    ),
    "an offset of 64 bits on chip": (
        "on chip takes a scalar of int32",
        lambda x: on_chip(x).ap([[64, 1], [1, 64]], scalar_offset=scalar(3, nl.int64)),
    ),
    "GpSimd activations on trn2": (
        "from NeuronCore-v4 on",
        lambda x: nisa.activation(tile((128, 64)), nl.exp, on_chip(x), engine=nisa.gpsimd_engine),
    ),
    "a trigger without its prepare": (
        "prepare the collective first",
        lambda x: ncc.all_to_all_v_trigger(nisa.memset(tile((1, 1)), 0)),
    ),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_the_release_forbids_is_refused_at_the_line(name: str):
    match, body = REFUSED[name]
    with pytest.raises(NkiValidationError, match=match) as caught:
        run_raw(lambda x: body(x), A)
    assert __file__ in caught.value.where


def test_gpsimd_runs_activations_on_trn3():
    def kernel(x):
        result = tile((128, 64))
        nisa.activation(result, nl.exp, on_chip(x), engine=nisa.gpsimd_engine)
        return to_hbm(result)

    run = Kernel(kernel, core=hardware.get("trn3")).run(A)
    assert np.allclose(run.outputs, np.exp(A), rtol=1e-5)
    assert (lower(run.traces[0], "exp").program.instructions["engine"] == Engine.GPSIMD).any()


def test_a_gpsimd_activation_does_not_reduce():
    def kernel(x):
        nisa.activation(
            tile((128, 64)), nl.exp, on_chip(x), reduce_res=tile((128, 1)), engine=nisa.gpsimd_engine
        )

    with pytest.raises(NkiValidationError, match="reduces on the Scalar engine only"):
        run_raw(kernel, A, target="trn3")


def test_a_collective_in_two_steps():
    def kernel(x):
        counts = nl.ndarray((2, 1), nl.uint32, nl.shared_hbm)
        held = tile((2, 1), nl.uint32)
        nisa.memset(held, 0)
        nisa.memset(held[0:1], 64)
        nisa.dma_copy(counts, held)
        source, result = (nl.ndarray((1, 64), nl.float32, nl.private_hbm) for _ in range(2))
        arguments = [source], [result], ncc.ReplicaGroup([[0]]), counts
        begun = ncc.all_to_all_v_prepare(*arguments)
        with pytest.raises(NkiValidationError, match="trigger that one first"):
            ncc.all_gather_v_prepare(*arguments)
        row = tile((1, 64))
        nisa.memset(row, 3.0)
        nisa.dma_copy(source, row)
        ncc.all_to_all_v_trigger(begun)
        nisa.dma_copy(row, result)
        return to_hbm(row)

    assert (run_raw(kernel, A).outputs == 3).all()
