from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.compiler.passes.pipeline import plan_module
from neuron_tools.compiler.passes.repetition import find_repetitions
from tests.unit.compiler.modules import layers, module


def plan(text: str, rows: int = 8):
    return plan_module(module(text, tuple(f"block{index}" for index in range(rows))), CompilerOptions())


def test_equal_blocks_are_one_repetition_with_their_values_and_framework_rows():
    found = plan(layers(5))
    repetitions = [item for item in find_repetitions(found) if len(item.windows) > 1]
    assert [len(item.windows) for item in repetitions] == [5]
    rows = [{row for group in window.groups for row in group.framework} for window in repetitions[0].windows]
    assert rows == [{0}, {1}, {2}, {3}, {4}]
    weights = {window.values.get(1, 1) for window in repetitions[0].windows}
    assert weights == set(found.module.parameters[1:])


def test_all_groups_are_kept_in_order():
    found = plan(layers(4))
    folded = [group for item in find_repetitions(found) for window in item.windows for group in window.groups]
    assert [id(group) for group in folded] == [id(group) for group in found.groups]


def test_blocks_that_are_wired_differently_are_no_repetition():
    text = layers(3).replace("stablehlo.add %x1, %m1", "stablehlo.add %x0, %m1")
    longest = max(len(item.windows) for item in find_repetitions(plan(text)))
    assert longest < 3


def test_blocks_with_other_shapes_are_no_repetition():
    text = layers(2).replace("stablehlo.tanh %p1", "stablehlo.abs %p1")
    assert all(len(item.windows) == 1 for item in find_repetitions(plan(text)))
