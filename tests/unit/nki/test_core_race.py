"""Two cores of one launch that meet in HBM with and without a barrier."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.call import KernelCall
from neuron_tools.nki.core_race import RaceWarning
from neuron_tools.nki.errors import RaceError
from neuron_tools.nki.kernel import Kernel
from tests.unit.nki.kernels import floats, on_chip, tile

A = floats(128, 32)


def meeting(order, rows=lambda core: core):
    """A kernel whose cores each write a half of a shared tensor, do `order`, and read what `rows` says."""

    def kernel(a):
        core = nl.program_id(0)
        shared = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm, name="halves")
        part, other = on_chip(a), tile((128, 32))
        nisa.dma_copy(shared[core * 128 : (core + 1) * 128], part)
        order(core, shared, part, other)
        half = rows(core)
        nisa.dma_copy(other, shared[half * 128 : (half + 1) * 128])
        return shared

    return Kernel(kernel, core=hardware.get("trn2"))[2]


def nothing(core, shared, part, other):
    pass


def barrier(core, shared, part, other):
    nisa.core_barrier(shared, (0, 1))


def barriers(core, shared, part, other):
    """As AWS's library keeps the loops of two cores in step: over what they share, and over a tile."""
    barrier(core, shared, part, other)
    nisa.core_barrier(part, (0, 1))


def exchange(core, shared, part, other):
    nisa.sendrecv(src=part, dst=other, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)


def test_reading_the_other_cores_half_at_once_is_refused_with_both_lines():
    with pytest.raises(
        RaceError, match=rf"reads halves while core . writes there \({__file__}.*core_barrier"
    ) as caught:
        meeting(nothing, lambda core: 1 - core).run(A)
    assert caught.value.where.startswith(__file__)


@pytest.mark.parametrize("order", [barrier, barriers, exchange])
def test_a_meeting_in_between_allows_it(order):
    meeting(order, lambda core: 1 - core).run(A)


def test_cores_may_read_what_they_wrote_themselves():
    meeting(nothing).run(A)


def test_a_write_after_the_barrier_races_with_a_read_after_it():
    def again(core, shared, part, other):
        nisa.core_barrier(shared, (0, 1))
        nisa.dma_copy(shared[core * 128 : (core + 1) * 128], part)

    with pytest.raises(RaceError, match="halves"):
        meeting(again, lambda core: 1 - core).run(A)


def partly_read(first):
    """A kernel whose first core keeps columns of an argument from `first` on; the second writes one."""

    def kernel(a):
        core, part = nl.program_id(0), tile((128, 32))
        out = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        if core == 0:
            nisa.dma_copy(part, a)
            if first:
                nisa.memset(part[:, :first], 0.0)
        else:
            nisa.memset(part, 7.0)
            nisa.dma_copy(a[:, :1], part[:, :1])
        nisa.dma_copy(out[core * 128 : (core + 1) * 128], part)
        return out

    return Kernel(kernel, core=hardware.get("trn2"))[2]


def test_an_argument_written_by_one_core_and_read_by_the_other_is_refused():
    with pytest.raises(RaceError, match=r"core 0 reads input\.0 while core 1 writes"):
        partly_read(0).run(A.copy())


def test_a_race_on_an_argument_is_warned_of_where_no_result_depends_on_it():
    given = A.copy()
    with pytest.warns(RaceWarning, match=r"core 0 reads input\.0 .*whichever core goes first"):
        done = partly_read(1).run(given)
    np.testing.assert_array_equal(done.outputs[:128, 1:], A[:, 1:])
    assert not done.outputs[:128, 0].any()
    assert (given[:, 0] == 7).all()
    np.testing.assert_array_equal(given[:, 1:], A[:, 1:])


def test_a_race_on_an_argument_is_refused_where_the_core_that_goes_first_anyway_writes():
    def kernel(a):
        core, part = nl.program_id(0), tile((128, 32))
        out = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.memset(part, 7.0)
        if core == 0:
            nisa.dma_copy(a[:, :1], part[:, :1])
        else:
            nisa.dma_copy(part, a)
        nisa.dma_copy(out[core * 128 : (core + 1) * 128], part)
        return out

    given = A.copy()
    with pytest.raises(RaceError, match=r"core 1 reads input\.0 while core 0 writes"):
        Kernel(kernel, core=hardware.get("trn2"))[2].run(given)
    np.testing.assert_array_equal(given, A)


def increasing(happens):
    """A kernel whose second core adds one to a column that the first one reads; each calls `happens`."""

    def kernel(a):
        core, part = nl.program_id(0), tile((128, 32))
        out = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(part, a)
        if core == 0:
            nisa.memset(part[:, :1], 0.0)
        else:
            nisa.tensor_scalar(part, part, nl.add, 1.0)
            nisa.dma_copy(a[:, :1], part[:, :1])
        happens()
        nisa.dma_copy(out[core * 128 : (core + 1) * 128], part)
        return out

    return Kernel(kernel, core=hardware.get("trn2"))[2]


def _print_everywhere():
    nl.device_print("here", 1)
    print("there")
    print("aside", file=sys.stderr)


def test_trying_the_other_order_neither_writes_arguments_nor_prints_again(capsys):
    given = A.copy()
    with pytest.warns(RaceWarning):
        increasing(_print_everywhere).run(given)
    np.testing.assert_array_equal(given[:, 0], A[:, 0] + 1)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("here 1\nthere\n" * 2, "aside\n" * 2)


def test_a_kernel_that_fails_in_the_other_order_depends_on_it():
    calls = iter([None, None])
    with pytest.raises(RaceError, match=r"core 0 reads input\.0"):
        increasing(lambda: next(calls)).run(A.copy())


def test_a_race_on_an_argument_is_told_where_no_values_show_its_effect():
    with pytest.warns(RaceWarning, match=r"core 0 reads input\.0 .*only a call on values can tell"):
        partly_read(1).run(A.copy(), values=False)


def test_a_call_that_no_values_can_judge_is_judged_by_those_of_each_call():
    call, arrays = KernelCall.of(partly_read(1), (A,), {}, lambda value: isinstance(value, np.ndarray))
    with pytest.warns(RaceWarning):
        form = call.form(tuple((array.shape, str(array.dtype)) for array in arrays))
    assert form.is_data_dependent


def test_columns_apart_do_not_race():
    def kernel(a):
        core = nl.program_id(0)
        shared = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        part = on_chip(a)
        nisa.dma_copy(shared[:, core * 32 : (core + 1) * 32], part)
        nisa.dma_copy(part, shared[:, core * 32 : (core + 1) * 32])
        return shared

    Kernel(kernel, core=hardware.get("trn2"))[2].run(A)


def test_what_lies_apart_or_before_a_meeting_is_no_race_however_much_there_is():
    """Each core writes rows of its own, meets, and reads the other's: the boxes around all of it overlap."""

    def kernel(a):
        core = nl.program_id(0)
        shared = nl.ndarray((512, 32), dtype=a.dtype, buffer=nl.shared_hbm, name="rows")
        part, other = on_chip(a), tile((128, 32))
        for turn in range(2):
            first = (2 * turn + core) * 128
            nisa.dma_copy(shared[first : first + 128], part)
            nisa.core_barrier(shared, (0, 1))
            first = (2 * turn + 1 - core) * 128
            nisa.dma_copy(other, shared[first : first + 128])
        return shared

    Kernel(kernel, core=hardware.get("trn2"))[2].run(A)


@pytest.mark.parametrize(("cores", "memory"), [(1, nl.hbm), (2, nl.shared_hbm)])
def test_arguments_lie_in_hbm_that_two_cores_share(cores, memory):
    def kernel(a):
        assert a.buffer == memory
        return a

    Kernel(kernel, core=hardware.get("trn2"))[cores].run(A)


def in_place(order):
    """A kernel whose cores each write a half of a shared tensor, do `order`, and copy all onto itself."""

    def kernel(a):
        core = nl.program_id(0)
        shared = nl.ndarray((256, 32), dtype=a.dtype, buffer=nl.shared_hbm, name="halves")
        part = on_chip(a)
        nisa.dma_copy(shared[core * 128 : (core + 1) * 128], part)
        order(core, shared, part, part)
        nisa.dma_copy(shared, shared)
        return shared

    return Kernel(kernel, core=hardware.get("trn2"))[2]


def test_cores_may_copy_a_tensor_onto_itself_after_a_meeting():
    in_place(barrier).run(A)


def test_a_copy_onto_itself_reads_what_the_other_core_writes():
    def kernel(a):
        shared = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.shared_hbm, name="whole")
        if nl.program_id(0) == 0:
            nisa.dma_copy(shared, on_chip(a))
        else:
            nisa.dma_copy(shared, shared)
        return shared

    with pytest.raises(RaceError, match="core 1 reads whole while core 0 writes there"):
        Kernel(kernel, core=hardware.get("trn2"))[2].run(A)
