"""The instruction table: what every record promises, and what calls get from it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.hardware.instruction_costs import OTHER, cost_rules
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.isa.table import TABLE
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.lowering import lower
from tests.unit.nki.kernels import on_chip, run_raw

TILE = np.ones((128, 64), np.float32)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_engines_of_a_record_have_a_cost(name):
    record = TABLE[name]
    rules = cost_rules(max(record.since, 3))
    for engine in record.engines:
        assert record.opcode is not None
        assert (engine.name, record.opcode.name) in rules or (engine.name, OTHER) in rules


@pytest.mark.parametrize("name", sorted(TABLE.keys() - {"rand"}))
def test_a_record_names_arguments_of_its_function(name):
    record, function = TABLE[name], getattr(nisa, name)
    parameters = inspect.signature(function).parameters
    assert {operand.name for operand in record.operands} <= set(parameters)
    assert "name" in parameters
    assert "Args:" in inspect.getdoc(function) or len(parameters) <= 4


def test_an_engine_that_cannot_run_an_instruction_is_refused():
    def kernel(x):
        tile = on_chip(x)
        nisa.tensor_copy(tile, tile, engine=nisa.tensor_engine)
        return x

    with pytest.raises(
        NkiValidationError, match="tensor_copy runs on Vector, Scalar or GpSimd, not on Tensor"
    ):
        run_raw(kernel, TILE)


def test_names_that_a_kernel_gives_reach_the_profile():
    def kernel(x):
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(tile, x, name="load_x")
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0, name="twice")
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        nisa.dma_copy(result, tile)
        return result

    (trace,) = Kernel(kernel, core=hardware.get("trn2")).run(TILE).traces
    names = lower(trace, "named").source.call_names()
    assert names == ["load_x", "twice", "tensor_scalar", "dma_copy"]
