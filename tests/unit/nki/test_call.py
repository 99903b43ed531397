"""Calls as frameworks see them: numbered arrays, forms from a trace, and numbers for equal calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.abstract import AbstractArray, map_leaves
from neuron_tools.nki.call import CallTable, Given, KernelCall, Made
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.errors import UninitializedReadError
from neuron_tools.nki.kernel import jit


@dataclass(frozen=True)
class Pair:
    left: object
    scale: float = 1.0


@jit
def scale_pair(pair, other, table=None):
    """other += pair.left * pair.scale; returns other and, under a name, a transposed copy of it."""
    tile = nl.ndarray(other.shape, dtype=other.dtype, buffer=nl.sbuf)
    added = nl.ndarray(other.shape, dtype=other.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=pair.left)
    nisa.dma_copy(dst=added, src=other)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=pair.scale)
    nisa.tensor_tensor(dst=added, data1=added, data2=tile, op=nl.add)
    nisa.dma_copy(dst=other, src=added)
    turned = nl.ndarray((other.shape[1], other.shape[0]), dtype=other.dtype, buffer=nl.shared_hbm)
    nisa.dma_transpose(dst=turned, src=other)
    return {"turned": turned, "sum": other}


@jit
def first_rows(x, count):
    """As many rows of x as a tensor says: the course depends on data."""
    rows = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=count)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    for _row in nl.dynamic_range(nisa.register_alloc(rows)):
        nisa.dma_copy(dst=tile[0:1, :], src=x[0:1, :])
    nisa.dma_copy(dst=result, src=tile)
    return result


@jit
def gathered_rows(x, steps, rows):
    """Rows of a buffer into which a loop writes as many rows of x as `steps` says."""
    buffer = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    index = nl.ndarray((x.shape[0], 1), dtype=nl.int32, buffer=nl.sbuf)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=count, src=steps)
    nisa.dma_copy(dst=index, src=rows)
    for _step in nl.dynamic_range(nisa.register_alloc(count)):
        nisa.dma_copy(dst=buffer, src=x)
    width = x.shape[1]
    nisa.dma_copy(
        dst=tile,
        src=buffer.ap(pattern=[[width, x.shape[0]], [1, width]], vector_offset=index, indirect_dim=0),
    )
    nisa.dma_copy(dst=result, src=tile)
    return result


def is_array(value):
    return isinstance(value, np.ndarray)


@pytest.fixture
def arrays():
    generator = np.random.default_rng(0)
    return [generator.standard_normal((8, 16)).astype(np.float32) for _ in range(2)]


FORM = ((8, 16), "float32")


def test_arrays_are_taken_out_and_put_back(arrays):
    call, taken = KernelCall.of(scale_pair, (Pair(arrays[0], 2.0),), {"other": arrays[1]}, is_array)
    assert call.arguments == (Pair(Given(0), 2.0),)
    assert call.keywords == {"other": Given(1)}
    assert [array is given for array, given in zip(taken, arrays)] == [True, True]
    (pair,), keywords = call.filled(["a", "b"])
    assert (pair, keywords) == (Pair("a", 2.0), {"other": "b"})


def test_an_array_given_twice_counts_once(arrays):
    call, taken = KernelCall.of(scale_pair, (Pair(arrays[0]), arrays[0]), {}, is_array)
    assert len(taken) == 1
    assert call.arguments[1] == Given(0)


def test_the_form_tells_results_and_written_arguments(arrays):
    call, _ = KernelCall.of(scale_pair, (Pair(arrays[0], 2.0), arrays[1]), {}, is_array)
    form = call.form((FORM, FORM))
    assert form.results == (((16, 8), "float32"), FORM)
    assert form.written == (1,)
    assert form.structure == {"turned": Made(0), "sum": Made(1)}
    assert form.returned(["t", "s"]) == {"turned": "t", "sum": "s"}
    assert not form.is_data_dependent
    assert call.form((FORM, FORM)) is form


def test_values_change_written_arrays_in_place(arrays):
    call, taken = KernelCall.of(scale_pair, (Pair(arrays[0], 2.0), arrays[1]), {}, is_array)
    expected = arrays[1] + 2 * arrays[0]
    turned, total = call.compute(taken)
    np.testing.assert_allclose(total, expected, rtol=1e-6)
    np.testing.assert_allclose(turned, expected.T, rtol=1e-6)
    np.testing.assert_allclose(arrays[1], expected, rtol=1e-6)


def test_a_course_that_depends_on_data_is_noted(arrays):
    call, _ = KernelCall.of(first_rows, (arrays[0], np.array([[2]], np.int32)), {}, is_array)
    assert call.form((FORM, ((1, 1), "int32"))).is_data_dependent


def test_equal_calls_have_one_number(arrays):
    table = CallTable()

    def number(scale, constant=None, kernel=scale_pair):
        pair = Pair(AbstractArray((8, 16), as_dtype("float32")), scale)
        call, _ = KernelCall.of(
            kernel, (pair,), {"table": constant}, lambda value: isinstance(value, AbstractArray)
        )
        return table.number(call)

    assert number(2.0) == number(2.0) != number(3.0)
    assert number(2.0, kernel=scale_pair[2]) != number(2.0)
    long = np.zeros(5000)
    other = long.copy()
    other[2500] = 1
    assert number(2.0, long) == number(2.0, long.copy()) != number(2.0, other)


def test_leaves_are_found_in_records_and_containers():
    found = []
    structure = {"a": [1, Pair((2, "text"))], "b": None}
    changed = map_leaves(
        structure, lambda leaf: isinstance(leaf, int), lambda leaf: found.append(leaf) or -leaf
    )
    assert found == [1, 2]
    assert changed == {"a": [-1, Pair((-2, "text"))], "b": None}
    same = Pair("text")
    assert map_leaves(same, lambda leaf: isinstance(leaf, int), lambda leaf: leaf) is same


def test_that_a_loop_of_unknown_length_writes_is_checked_when_there_are_values(arrays):
    rows = np.arange(8, dtype=np.int32)[::-1].reshape(8, 1).copy()

    def call(steps):
        given = (arrays[0], np.array([[steps]], np.int32), rows)
        return KernelCall.of(gathered_rows, given, {}, is_array)

    made, taken = call(1)
    form = made.form((((8, 16), "float32"), ((1, 1), "int32"), ((8, 1), "int32")))
    assert form.is_data_dependent
    assert form.results == (((8, 16), "float32"),)
    np.testing.assert_array_equal(made.compute(taken)[0], arrays[0][::-1])
    unwritten, taken = call(0)
    with pytest.raises(UninitializedReadError, match="nothing has been written there"):
        unwritten.compute(taken)
