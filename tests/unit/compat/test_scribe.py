"""Functions that build HLO by AWS's builder compute in PyTorch what they say."""

import pytest
import torch

from neuron_tools import compat
from neuron_tools.compat.absent import AbsentError

ROWS = torch.arange(12.0).view(3, 4)


@pytest.fixture(scope="module")
def xla_hlo_call():
    uninstall = compat.install()
    from torch_neuronx.xla_impl.ops import xla_hlo_call

    yield xla_hlo_call
    uninstall()


@pytest.mark.parametrize(
    ("starts", "rows", "columns"),
    [((0, 0), [0, 1], [0, 1, 2, 3]), ((1, 0), [1, 2], [0, 1, 2, 3]), ((9, 0), [1, 2], [0, 1, 2, 3])],
)
@pytest.mark.parametrize("width", [4, 2])
def test_an_update_stands_at_its_place_and_inside(xla_hlo_call, starts, rows, columns, width):
    @xla_hlo_call
    def write(tensor, update, *places):
        return tensor.dtype[tensor.sizes].DynamicUpdateSlice(tensor, update, *places)

    written = write(ROWS, -torch.ones(2, width), *(torch.tensor([each]) for each in starts))
    expected = ROWS.clone()
    expected[rows, :width] = -1
    torch.testing.assert_close(written, expected)


def test_an_update_of_everything_is_the_result(xla_hlo_call):
    @xla_hlo_call
    def fill(tensor, update):
        zeros = [tensor.scribe.u32.Constant(constant_value=0)] * len(tensor.sizes)
        return tensor.dtype[tensor.sizes].DynamicUpdateSlice(tensor, update, *zeros)

    torch.testing.assert_close(fill(ROWS, ROWS + 1), ROWS + 1)


def test_operations_of_one_function_follow_each_other(xla_hlo_call):
    @xla_hlo_call
    def compute(tensor, times):
        dtype, (rows, columns) = tensor.dtype, tensor.sizes
        half = [{"start": 0, "limit": rows}, {"start": 0, "limit": columns, "stride": 2}]
        left = dtype[rows, columns // 2].Slice(tensor, slice_dimensions=half)
        both = dtype[rows, columns].Concatenate(left, left, dimensions=[1])
        turned = dtype[columns, rows].Transpose(both, dimensions=[1, 0])
        ones = dtype[columns, rows].Constant(constant_value=1)
        numbers = dtype[2].Constant(constant_value=[1, times])
        return dtype[columns * rows].Reshape(dtype[columns, rows].Add(turned, ones)), numbers

    flat, numbers = compute(ROWS, 3)
    torch.testing.assert_close(flat, torch.cat([ROWS[:, ::2]] * 2, 1).T.reshape(-1) + 1)
    assert numbers.tolist() == [1, 3]


def test_random_numbers_are_spread_over_their_range(xla_hlo_call):
    @xla_hlo_call
    def draw(tensor):
        low, high = (tensor.dtype.Constant(constant_value=value) for value in (2, 4))
        return tensor.dtype[tensor.sizes].Rng(low, high, distribution=1)

    drawn = draw(torch.zeros(1000))
    assert 2 <= drawn.min() < 2.1 < 3.9 < drawn.max() < 4


def test_an_operation_that_is_not_there_is_named(xla_hlo_call):
    @xla_hlo_call
    def sort(tensor):
        return tensor.dtype[tensor.sizes].Sort(tensor)

    with pytest.raises(AbsentError, match="HLO's operation Sort"):
        sort(ROWS)
    with pytest.raises(AttributeError, match="no element type 'f8'"):
        xla_hlo_call(lambda tensor: tensor.scribe.f8)(ROWS)


@pytest.mark.parametrize("count", [1, 2])
def test_markers_of_layers_change_nothing_and_other_custom_calls_are_refused(xla_hlo_call, count):
    from torch_neuronx.xla_impl import custom_call_targets as targets

    def mark(target):
        def marked(*values):
            kind = values[0] if len(values) == 1 else values[0].scribe.tuple(*values)
            return kind.CustomCall(*values, custom_call_target=target)

        return xla_hlo_call(marked)

    given = [torch.arange(3.0) + number for number in range(count)]
    made = mark(targets.AwsNeuronModuleMarkerStartForward)(*given)
    for result, value in zip(made if count > 1 else [made], given):
        assert torch.equal(result, value)
    with pytest.raises(AbsentError, match="The custom call AwsNeuronOther"):
        mark("AwsNeuronOther")(*given)
