import pytest
import torch

from neuron_tools.frontends.torch_lowering import lowering, mlir
from neuron_tools.frontends.torch_lowering.fake import fake_tensor
from neuron_tools.frontends.torch_lowering.recurrence import recur, step
from neuron_tools.records.program import FrameworkOperation
from tests.unit.frontends.lowered import lowered

ROWS = 7


@step
def decay(carried, row, fixed):
    """A running sum that fades, and how often it was above a limit; both rows of the step's."""
    (total, count), (added, weight), (limit,) = carried, row, fixed
    total = total * weight + added
    above = total > limit
    return [total, count + above], [total, above]


@step
def factorised(carried, row, fixed):
    return carried, [torch.linalg.svdvals(row[0])]


def taken_apart(total, count, added, weight, limit, *, backwards):
    """What `decay` does, row by row."""
    made = []
    for at in reversed(range(ROWS)) if backwards else range(ROWS):
        (total, count), row = decay([total, count], [added[at], weight[at]], [limit])
        made.insert(0, row) if backwards else made.append(row)
    return [total, count, *(torch.stack(rows) for rows in zip(*made))]


def as_recurrence(total, count, added, weight, limit, *, backwards):
    last, made = recur(decay, [total, count], [added, weight], [limit], backwards=backwards)
    return [*last, *made]


def arguments():
    return [torch.zeros(4), torch.zeros(4, dtype=torch.int64), torch.randn(ROWS, 4), torch.rand(ROWS, 1),
            torch.tensor(0.5)]  # fmt: skip


def build(function, tensors, **options):
    def add(builder):
        nodes = [builder.parameter(fake_tensor(each.shape, None, each.dtype)) for each in tensors]
        return builder.call(function, nodes, options, 0)

    return add


@pytest.mark.parametrize("backwards", [False, True])
def test_a_loop_leaves_and_makes_what_the_steps_do_one_after_the_other(backwards):
    tensors = arguments()
    found = lowered(as_recurrence, *tensors, backwards=backwards)
    for value, expected in zip(found, taken_apart(*tensors, backwards=backwards), strict=True):
        torch.testing.assert_close(value, expected)


def test_two_loops_follow_each_other_and_stand_between_other_operators():
    def two(added, weight):
        begin = [added[0] * 0, torch.zeros(4, dtype=torch.int64)]
        _, (first, _) = recur(decay, begin, [added, weight], [weight[0, 0]])
        _, (second, _) = recur(decay, begin, [first.exp(), weight], [weight[0, 0]], backwards=True)
        return second + first

    _, _, added, weight, _ = arguments()
    total, count = torch.zeros(4), torch.zeros(4, dtype=torch.int64)
    first = taken_apart(total, count, added, weight, weight[0, 0], backwards=False)[2]
    second = taken_apart(total, count, first.exp(), weight, weight[0, 0], backwards=True)[2]
    (found,) = lowered(two, added, weight)
    torch.testing.assert_close(found, second + first)


def test_the_program_has_one_step_however_many_rows_there_are():
    def operations(rows):
        tensors = [*arguments()[:2], torch.zeros(rows, 4), torch.zeros(rows, 1), torch.tensor(0.5)]
        add = build(as_recurrence, tensors, backwards=False)
        return lowering.lower(add, [FrameworkOperation("aten::decay")], "main").operations

    (loop,) = [each for each in operations(1000) if each.opcode == "while"]
    assert len(operations(1000)) == len(operations(3))
    assert {each.opcode for each in loop.regions[1].operations} >= {"dynamic_slice", "dynamic_update_slice"}
    assert loop.framework == (0,)


def test_a_loop_is_partitioned_over_cores_with_what_is_around_it():
    add = build(as_recurrence, arguments(), backwards=False)
    part = lowering.lower_part(
        add, [FrameworkOperation("aten::decay")], "main", 2, {2: "{devices=[1,2]<=[2]}"}
    )
    assert "while" in [each.opcode for each in part.module.operations]
    assert part.module.shape_of(part.module.parameters[2]) == (ROWS, 2)


def with_factors():
    def values(carried, tables):
        return recur(factorised, [carried], [tables])[1]

    return build(values, [torch.zeros(1), torch.zeros(3, 4, 4)])


def test_an_operator_of_a_step_that_is_not_lowered_natively_is_named_and_stays_a_call():
    module = lowering.lower(with_factors(), [FrameworkOperation("aten::svd")], "main")
    (loop,) = [each for each in module.operations if each.opcode == "while"]
    (call,) = [each for each in loop.regions[1].operations if each.opcode == "custom_call"]
    assert call.attributes["unlowered"]
    assert call.framework == (0,)
    assert any("svd" in warning for warning in module.warnings)


def test_a_step_with_an_operator_that_is_not_lowered_natively_is_refused_as_text():
    with pytest.raises(mlir.LoweringFailure, match="within a loop"):
        lowering.lower_to_text(with_factors())
