"""Work of operators, from what a trace recorded of their arguments."""

import json

import pytest

from neuron_profile.analysis.traces.work import OperatorWork, operator_work

BF16 = "c10::BFloat16"


def work(name, shapes, types=None, values=()):
    arguments = {
        "Input Dims": shapes,
        "Input type": types or [BF16] * len(shapes),
        "Concrete Inputs": list(values),
    }
    return operator_work(name, json.dumps(arguments))


def test_a_product_reads_its_inputs_once_and_writes_its_result():
    assert work("aten::mm", [[4, 8], [8, 2]]) == OperatorWork(2 * 4 * 8 * 2, 2 * (32 + 16 + 8), "bf16")


def test_a_causal_attention_computes_half():
    shape = [2, 4, 16, 8]
    values = ["", "", "", "0.", "True"]
    name = "aten::_scaled_dot_product_flash_attention"
    whole, half = work(name, [shape] * 3), work(name, [shape] * 3, values=values)
    assert whole.flops == 2 * 2 * 2 * 4 * 16 * 16 * 8
    assert half.flops == whole.flops // 2


def test_a_convolution_counts_the_places_of_its_kernel():
    given, weight = [1, 3, 8, 8], [4, 3, 3, 3]
    values = ["", "", "", "[1]", "[1, 1]", "[1]"]
    assert work("aten::convolution", [given, weight], values=values).flops == 2 * (4 * 8 * 8) * 3 * 9


@pytest.mark.parametrize(
    "arguments", [None, "", "{}", '{"Input Dims": 3, "Input type": []}', '{"Input Dims": []}']
)
def test_without_shapes_nothing_is_known(arguments):
    assert operator_work("aten::mm", arguments) is None


@pytest.mark.parametrize("values", [["[0]", "[1]", "[1]"], ["[1]", "[Infinity]", "[1]"], ["[" * 100_000] * 3])
def test_values_that_no_operator_takes_make_no_product(values):
    found = work("aten::convolution", [[1, 3, 8, 8], [4, 3, 3, 3]], values=["", "", "", *values])
    assert found.flops == 0


def test_shapes_that_no_machine_holds_are_none():
    assert work("aten::mm", [[1 << 40, 1 << 40], [1 << 40, 2]]) is None
