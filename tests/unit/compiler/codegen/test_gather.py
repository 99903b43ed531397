"""Gathers and scatters: what is moved for their indices."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.hlo import Module
from neuron_tools.records.program import Memory, Program
from neuron_tools.simulator.check import check
from tests.unit.compiler.modules import CORE, tile_races
from tests.unit.compiler.operators import lowered

NUMBERS = torch.int64


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def elements_added(rows: int) -> Module:
    """An index for each element, which is made a pair of row and column."""
    index, update = empty(rows, 130, dtype=NUMBERS), empty(rows, 130)
    return lowered(torch.ops.aten.scatter_add.default, empty(rows, 64), 1, index, update)


def rows_of_batches(rows: int) -> Module:
    """An index for each row, within four batches."""
    index = empty(4, rows, 1, dtype=NUMBERS).expand(4, rows, 64)
    return lowered(torch.ops.aten.gather.default, empty(4, 1000, 64), 1, index)


def whole_numbers_loaded(program: Program) -> int:
    """Bytes that DMA brings into SBUF of tensors of 8-byte numbers."""
    wide = [row for row, tensor in enumerate(program.tensors) if tensor.dtype.byte_count == 8]
    dmas = program.dmas
    chosen = (dmas["destination_memory"] == Memory.SBUF) & [tensor in wide for tensor in dmas["tensor"]]
    return int(dmas["bytes"][chosen].sum())


@pytest.mark.parametrize("rows", [700, 100_000])
@pytest.mark.parametrize(("module", "indices"), [(elements_added, 2 * 130), (rows_of_batches, 4)])
def test_indices_are_loaded_once_in_blocks_that_fit_sbuf(module, indices, rows):
    program = compile_module(module(rows), CORE)
    check(program, CORE)
    assert not program.warnings
    assert tile_races(program) == 0
    assert whole_numbers_loaded(program) == indices * rows * NUMBERS.itemsize
