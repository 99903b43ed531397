"""Programs of kernel calls inside compiled graphs, on one physical core and on two."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from neuron_tools.frontends.nki.ready import programs_of, ready_program
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.call import KernelCall
from neuron_tools.nki.kernel import jit
from neuron_tools.records.program import Memory

FORMS = (((128, 64), "float32"),)


def uneven(busy_core):
    """A kernel whose cores each write half of the result, one of them after much more work."""

    @jit
    def kernel(x):
        scratch = [
            nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.hbm) for _ in range(nl.program_id(0) + 1)
        ]  # the cores number their tensors differently
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        core = nl.program_id(0)
        tile = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        half = slice(64 * core, 64 * core + 64)
        nisa.dma_copy(dst=tile, src=x[half, :])
        for _ in range(50 if core == busy_core else 1):
            nisa.tensor_scalar(tile, tile, op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=scratch[-1], src=tile[0:1, 0:1])
        nisa.dma_copy(dst=result[half, :], src=tile)
        return result

    return kernel


def call_of(kernel):
    call, _ = KernelCall.of(kernel, (np.zeros((128, 64), np.float32),), {}, lambda a: hasattr(a, "shape"))
    return call


@pytest.mark.parametrize("busy_core", [0, 1])
def test_a_launch_on_two_cores_takes_as_long_as_the_slower(busy_core):
    call = call_of(uneven(busy_core)[2])
    ready = ready_program(call, FORMS)
    programs = programs_of(call, call.form(FORMS))
    assert len(ready.program.instructions) == len(programs[busy_core].instructions)
    assert len(programs[busy_core].instructions) > len(programs[1 - busy_core].instructions)


@pytest.mark.parametrize("busy_core", [0, 1])
def test_operands_and_results_are_the_tensors_that_its_transfers_name(busy_core):
    ready = ready_program(call_of(uneven(busy_core)[2]), FORMS)
    dmas, (((given, _),), ((made, _),)) = ready.program.dmas, (ready.operands, ready.results)
    loads = dmas[dmas["source_memory"] == Memory.HBM]
    stores = dmas[(dmas["destination_memory"] == Memory.HBM) & (dmas["bytes"] > 4)]
    assert loads["tensor"].tolist() == [given]
    assert stores["tensor"].tolist() == [made]
