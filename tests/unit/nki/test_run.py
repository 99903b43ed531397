from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.nki import execution, isa as nisa, language as nl
from neuron_tools.nki.errors import NkiError, NkiValidationError
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.simulation import simulate
from neuron_tools.nki.timing import time_kernel
from tests.unit.nki.kernels import floats, on_chip, tile

A = floats(128, 32)


@jit
def double(a):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    part = on_chip(a)
    nisa.tensor_scalar(part, part, nl.multiply, 2.0)
    nisa.dma_copy(result, part)
    return result


def test_a_kernel_is_called_like_its_function():
    assert double.__name__ == "double"
    np.testing.assert_array_equal(double(A), 2 * A)
    np.testing.assert_array_equal(simulate(double)(A), 2 * A)


def test_threads_run_kernels_at_the_same_time():
    """As XLA does with a kernel that is sharded over devices; `range` is a module's own again after both."""

    def waiting(begun, go_on):
        @jit
        def kernel(a):
            result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
            part = on_chip(a)
            begun.set()
            assert go_on.wait(60)
            assert "range" in globals()
            for _ in range(3):
                nisa.tensor_scalar(part, part, nl.multiply, 2.0)
            nisa.dma_copy(result, part)
            return result

        return kernel

    first, second = (Event(), Event()), (Event(), Event())
    with ThreadPoolExecutor() as threads:
        runs = []
        for begun, go_on in (first, second):
            runs.append(threads.submit(waiting(begun, go_on).run, A))
            assert begun.wait(60)
        first[1].set()
        np.testing.assert_array_equal(runs[0].result().outputs, 8 * A)
        second[1].set()
        np.testing.assert_array_equal(runs[1].result().outputs, 8 * A)
    assert "range" not in globals()


def test_kernels_may_call_kernels():
    @jit
    def outer(a):
        return double(double(a))

    np.testing.assert_array_equal(outer(A), 4 * A)


def test_results_keep_their_structure():
    @jit
    def kernel(tensors, factor=1.0, *, name=None):
        assert name == "x"
        results = []
        for tensor in tensors:
            part = on_chip(tensor)
            nisa.tensor_scalar(part, part, nl.multiply, factor)
            result = nl.ndarray(tensor.shape, dtype=tensor.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(result, part)
            results.append(result)
        return {"first": results[0], "all": tuple(results)}

    found = kernel([A, 2 * A], 3.0, name="x")
    np.testing.assert_array_equal(found["first"], 3 * A)
    np.testing.assert_array_equal(found["all"][1], 6 * A)


@dataclass(frozen=True)
class Options:
    bias: Any
    scale: float


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("rounded", ["0", "1"])
def test_an_array_that_may_not_be_written_stays_as_it_is(dtype, rounded, monkeypatch):
    monkeypatch.setenv("NKI_PRECISE_FP", rounded)

    @jit
    def increased(x):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1)
        nisa.dma_copy(dst=x, src=tile)
        return x

    given = np.zeros((128, 4), dtype)
    given.flags.writeable = False
    np.testing.assert_array_equal(simulate(increased)(given), np.ones_like(given))
    assert not given.any()


def test_records_may_hold_tensors():
    @jit
    def kernel(a, options):
        part, bias = on_chip(a), on_chip(options.bias)
        nisa.tensor_scalar(part, part, nl.add, bias, op1=nl.multiply, operand1=options.scale)
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(result, part)
        return result

    bias = floats(128, 1, seed=1)
    np.testing.assert_allclose(kernel(A, Options(bias, 2.0)), (A + bias) * 2, rtol=1e-6)


def test_returning_a_tile_is_refused():
    @jit
    def kernel(a):
        return on_chip(a)

    with pytest.raises(NkiValidationError, match="copy it into a tensor in HBM"):
        kernel(A)


def test_shapes_alone_give_the_same_instructions():
    with_values, without = double.run(A), double.run(A, values=False)
    np.testing.assert_array_equal(with_values.traces[0].row_table(), without.traces[0].row_table())
    assert not without.outputs.any()


def test_a_course_that_depends_on_values_is_computed_all_the_same():
    def kernel(a, count):
        held = tile((1, 1), nl.int32)
        nisa.dma_copy(held, count)
        register = nisa.register_alloc()
        nisa.register_load(register, held)
        part = on_chip(a)
        for _ in nl.dynamic_range(register):
            nisa.tensor_copy(part, part)
        return a

    done = Kernel(kernel, core=hardware.get("trn2")).run(A, np.array([[5]], np.int32), values=False)
    (trace,) = done.traces
    assert trace.data_dependent
    assert [kind.name for kind in trace.kind_list].count("tensor_copy") == 1
    assert (trace.row_table()[:, 0] == trace.kind_list[-1].number).sum() == 5


def two_cores(a, b, dma_engine=nisa.dma_engine.dma):
    rank = nl.program_id(0)
    assert nl.num_programs(axes=0) == 2
    shared = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm, name="shared")
    result = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm)
    part = on_chip(a if rank == 0 else b)
    nisa.dma_copy(shared[rank * 128 : (rank + 1) * 128], part)
    nisa.core_barrier(shared, (0, 1))
    other = on_chip(shared[(1 - rank) * 128 : (2 - rank) * 128])
    received = tile((128, 32))
    nisa.sendrecv(
        part, received, send_to_rank=1 - rank, recv_from_rank=1 - rank, pipe_id=0, dma_engine=dma_engine
    )
    nisa.tensor_tensor(other, other, received, nl.add)
    nisa.dma_copy(result[rank * 128 : (rank + 1) * 128], other)
    return result


@pytest.mark.parametrize("dma_engine", list(nisa.dma_engine))
def test_two_cores_share_hbm_and_exchange_tiles(dma_engine):
    b = floats(128, 32, seed=1)
    kernel = Kernel(partial(two_cores, dma_engine=dma_engine), core=hardware.get("trn2"))
    done = kernel[2].run(A, b)
    np.testing.assert_array_equal(done.outputs, np.concatenate([2 * b, 2 * A]))
    assert len(done.traces) == 2
    timing = time_kernel(kernel[2], (A, b), {})
    assert len(timing.simulations) == 2
    assert timing.duration_ns > 1000


def test_a_failure_on_one_core_ends_both():
    def kernel(a):
        if nl.program_id(0) == 1:
            raise ValueError("only here")
        nisa.core_barrier(a, (0, 1))
        return a

    with pytest.raises(ValueError, match="only here"):
        Kernel(kernel, core=hardware.get("trn2"))[2].run(A)


def test_an_error_leaves_no_kernel_running():
    @jit
    def broken(a):
        return tile((256, 4))

    with pytest.raises(NkiError):
        broken(A)
    np.testing.assert_array_equal(double(A), 2 * A)


def test_listeners_execute_calls():
    seen = []

    def listener(kernel, arguments, keywords):
        seen.append((kernel.name, len(arguments)))
        return NotImplemented if len(seen) == 1 else "taken"

    stop = execution.listen(listener)
    try:
        np.testing.assert_array_equal(double(A), 2 * A)
        assert double(A) == "taken"
    finally:
        stop()
    assert seen == [("double", 1)] * 2
    np.testing.assert_array_equal(double(A), 2 * A)


def test_timing_knows_what_engines_were_busy():
    timing = time_kernel(double, (A,), {})
    busy = timing.busy_ns()
    assert 0 < busy["Vector"] < timing.duration_ns
    assert busy["Tensor"] == 0
    assert timing.summary()["dma_transfers"] == 2


@pytest.mark.parametrize("target", ["trn1", "inf2", "trn2", "trn3"])
def test_kernels_run_on_every_generation(target):
    kernel = Kernel(double.func, core=hardware.get(target))
    np.testing.assert_array_equal(kernel(A), 2 * A)
    assert time_kernel(kernel, (A,), {}).duration_ns > 1000


def test_the_version_follows_the_core():
    seen = []

    def kernel(a):
        seen.append(nisa.get_nc_version())
        return a

    for target in ("trn1", "trn2", "trn3"):
        Kernel(kernel, core=hardware.get(target)).run(A)
    assert seen == [nisa.nc_version.gen2, nisa.nc_version.gen3, nisa.nc_version.gen4]
    assert seen[0] < seen[1] <= seen[2]


def test_the_values_of_tiles_that_nothing_names_any_more_are_given_back() -> None:
    def kernel(x):
        result = nl.ndarray((128, 4096), nl.float32, nl.shared_hbm)
        for _ in range(64):
            tile = nl.ndarray((128, 4096), nl.float32, nl.sbuf)
            part = tile[:, 0:1024]
            nisa.memset(tile, 1.0)
            del tile
            nisa.dma_copy(result[:, 0:1024], part)
        nisa.dma_copy(result[:, 1024:4096], x[:, 1024:4096])
        return result

    x = np.ones((128, 4096), np.float32)
    tracemalloc.start()
    done = Kernel(kernel).run(x)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (done.outputs == 1).all()
    assert most < 16 * x.nbytes  # all tiles at once would take 64 times as much


def test_an_array_of_wider_elements_that_is_only_read_stays_as_it_is():
    given = A.astype(np.float64) + 1e-12
    kept = given.copy()
    double.run(given)
    np.testing.assert_array_equal(given, kept)


def test_a_negative_zero_is_written_over_a_positive_one():
    def kernel(a):
        part = tile(a.shape)
        nisa.memset(part, -0.0)
        nisa.dma_copy(a, part)
        return a

    given = np.zeros((128, 64), np.float32)[:, ::2]
    Kernel(kernel, core=hardware.get("trn2")).run(given)
    assert np.signbit(given).all()
