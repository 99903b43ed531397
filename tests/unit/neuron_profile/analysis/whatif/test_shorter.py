"""Work of padded batches at other lengths, and of narrow strips that become wide ones."""

from dataclasses import replace

import numpy as np
import pytest

from neuron_profile.analysis.whatif.change import Variant
from neuron_profile.analysis.whatif.kernel_lines import KernelLines, ProgramWithLines
from neuron_profile.analysis.whatif.shorter import Shortening, in_shorter
from neuron_profile.analysis.whatif.wider_strips import in_wider_strips
from neuron_tools.records.program import DType, Program, Tensor, TensorKind
from neuron_tools.simulator import simulate
from neuron_tools.simulator.cost_scale import CostScale
from tests.unit.neuron_profile.small_capture import CORE, elementwise, program

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


def test_an_operator_on_other_tensors_stays_as_it_is():
    whole = unchanged(with_tensor((512, 256)))
    assert time_ps(in_shorter(whole, QUARTER)) == time_ps(whole)


def test_strips_become_one_instruction_for_several():
    whole = program([("gelu", 1)], elementwise(64))
    count = len(whole.instructions)
    lines = KernelLines((("k.py", 3),), np.zeros(count, np.int64), np.zeros(len(whole.dmas), np.int64))
    fields = {name: getattr(whole, name) for name in Program.__dataclass_fields__}
    kernel = unchanged(ProgramWithLines(**fields, lines=lines))
    wide = in_wider_strips(kernel, 8)
    assert np.count_nonzero(wide.scale.instructions) == -(-count // 8)
    elements, before = wide.program.instructions["elements"], whole.instructions["elements"]
    assert (wide.scale.instructions * elements).sum() == before.sum()
    assert time_ps(wide) < time_ps(kernel)
