"""Work of padded batches at other lengths, and of narrow strips that become wide ones."""

from dataclasses import replace

import numpy as np
import pytest

from neuron_profile.analysis.whatif.change import Variant
from neuron_profile.analysis.whatif.kernel_lines import KernelLines, ProgramWithLines
from neuron_profile.analysis.whatif.shorter import Shortening, in_shorter
from neuron_profile.analysis.whatif.wider_strips import in_wider_strips, on_more_partitions
from neuron_tools.records.program import DType, Program, Tensor, TensorKind
from neuron_tools.simulator import simulate
from neuron_tools.simulator.cost_scale import CostScale
from tests.unit.neuron_profile.small_capture import CORE, elementwise, loads, program

QUARTER = Shortening(rows=8, length=512, shorter=128)


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [
        ((8, 512, 256), 1),
        ((4096, 256), 1),
        ((8, 4, 512, 512), 2),
        ((32, 512, 512), 1),
        ((8, 512), 1),
        ((512, 256), 0),
        ((256, 1024), 0),
        ((), 0),
    ],
)
def test_dimensions_that_count_positions(shape, lengths):
    assert QUARTER.lengths_in(shape) == lengths


@pytest.mark.parametrize(
    ("shape", "left"), [((4, 512, 256), 0.25), ((2048, 256), 0.25), ((8, 256, 256), 0.25), ((64, 128), 1.0)]
)
def test_the_half_of_a_tensor_that_one_core_has_counts_positions_as_the_whole_does(shape, left):
    assert QUARTER.share_of([shape], are_halves=True) == left


def time_ps(variant):
    return int(simulate(variant.program, variant.core, scale=variant.scale).duration_ps)


def unchanged(whole):
    return Variant(whole, CORE, CostScale.unchanged(whole))


def with_tensor(shape):
    whole = program([("gelu", 1)], elementwise(64))
    return replace(whole, tensors=(Tensor("x", TensorKind.INPUT, DType.BF16, shape),))


def test_an_operator_on_a_padded_tensor_keeps_as_many_tiles_as_its_length():
    whole = unchanged(with_tensor((8, 512, 256)))
    shorter = in_shorter(whole, QUARTER)
    assert np.count_nonzero(shorter.scale.instructions) == len(whole.program.instructions) / 4
    assert time_ps(shorter) < 0.5 * time_ps(whole)


def test_of_operands_of_a_product_that_have_one_shape_one_carries_positions():
    whole = program([("matmul", 1)], loads(16, 4096))
    whole.dmas["tensor"] = np.arange(16) % 2
    operand = Tensor("x", TensorKind.INPUT, DType.BF16, (4096, 256))
    shorter = in_shorter(unchanged(replace(whole, tensors=(operand, operand))), QUARTER)
    assert [np.count_nonzero(shorter.scale.dmas[number::2]) for number in (0, 1)] == [2, 8]


def test_an_operator_on_other_tensors_stays_as_it_is():
    whole = unchanged(with_tensor((512, 256)))
    assert time_ps(in_shorter(whole, QUARTER)) == time_ps(whole)


def of_one_line(whole):
    """A program as that of a kernel's line."""
    count = len(whole.instructions)
    lines = KernelLines((("k.py", 3),), np.zeros(count, np.int64), np.zeros(len(whole.dmas), np.int64))
    fields = {name: getattr(whole, name) for name in Program.__dataclass_fields__}
    return unchanged(ProgramWithLines(**fields, lines=lines))


def test_rows_on_few_partitions_become_one_on_all_of_them():
    whole = program([("load", 1)], loads(16, 4096))
    whole.instructions["partitions"] //= 4
    whole.dmas["partitions"] //= 4
    kernel = of_one_line(whole)
    chosen = np.ones(16, bool)
    full = on_more_partitions(kernel, whole.instructions["partitions"] > 0, chosen, 128)
    assert np.count_nonzero(full.scale.dmas) == 4
    assert (full.scale.dmas * full.program.dmas["bytes"]).sum() == whole.dmas["bytes"].sum()
    assert set(full.program.dmas["partitions"][full.scale.dmas > 0]) == {128}
    assert time_ps(full) < time_ps(kernel)


def test_strips_become_one_instruction_for_several():
    whole = program([("gelu", 1)], elementwise(64))
    count, kernel = len(whole.instructions), of_one_line(whole)
    wide = in_wider_strips(kernel, 8)
    assert np.count_nonzero(wide.scale.instructions) == -(-count // 8)
    elements, before = wide.program.instructions["elements"], whole.instructions["elements"]
    assert (wide.scale.instructions * elements).sum() == before.sum()
    assert time_ps(wide) < time_ps(kernel)
