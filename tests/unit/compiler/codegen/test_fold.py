"""Reductions over few leading slices."""

import pytest

from neuron_tools.records.program import Memory
from tests.unit.compiler.modules import compiled, computed, moved, opcodes, reduction, tile_races


@pytest.mark.parametrize(
    ("shape", "axes"), [((8, 128, 256), (0,)), ((4, 6, 4096), (1,)), ((8, 2, 64, 128), (0, 1))]
)
def test_slices_are_added_elementwise(shape, axes):
    program = compiled(reduction("add", shape, axes))
    assert "PARTITION_REDUCE" not in opcodes(program)
    assert "MATMUL" not in opcodes(program)
    elements, kept = 1, 1
    for axis, extent in enumerate(shape):
        elements *= extent
        kept *= 1 if axis in axes else extent
    assert moved(program, Memory.HBM, Memory.SBUF) == 4 * elements
    assert moved(program, Memory.SBUF, Memory.HBM) == 4 * kept
    assert computed(program, "TENSOR_TENSOR", "TENSOR_COPY") == elements
    assert tile_races(program) == 0


def test_many_rows_are_still_summed_across_partitions():
    assert "MATMUL" in opcodes(compiled(reduction("add", (512, 256), (0,))))
