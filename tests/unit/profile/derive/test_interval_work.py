import json

import pytest

from neuron_tools.profile.derive import framework_node
from tests.unit.profile.builders import derived, dma, instruction

# 200 GFLOPS and 100 GB/s: 10 ns are 2,000 operations and 1,000 bytes.
TABLES = {
    "Instruction": [
        instruction("Tensor", 0, 10, layer="/m/a", tensor_elements=500, raw_flops=1000),
        instruction("Tensor", 20, 30, layer="/m/b", tensor_elements=900, raw_flops=1800,
                    tensor_elements_transpose=900, flops_transpose=1800),
        instruction("Tensor", 100, 110, layer="/m/a", tensor_elements=200, raw_flops=400),
        instruction("Vector", 110, 120, layer="/m/a"),
        instruction("Scalar", 200, 210, layer=None),
    ],
    "DmaPacketAggregated": [dma(30, 40, 500, layer="/m/b"), dma(12, 20, 70, "SBUF", "SBUF", layer="/m/b")],
}  # fmt: skip


def per_interval(tmp_path, column, tables=TABLES):
    query = f"SELECT node_name, {column} FROM FrameworkNode ORDER BY id"
    return {name: json.loads(text) for name, text in derived(tmp_path / "p", tables, query)}


def test_work_falls_into_the_interval_of_the_node_and_of_all_above(tmp_path):
    assert per_interval(tmp_path, "element_count_per_interval") == {
        "/": [500, 900, 200, 0],
        "/m": [500, 900, 200],
        "/m/a": [500, 200],
        "/m/b": [900],
    }


@pytest.mark.parametrize(
    ("column", "of_module"),
    [
        ("transpose_element_count_per_interval", [0, 900, 0]),
        ("hbm_transfer_size_per_interval", [0, 500, 0]),
        ("hfu_per_interval", [0.5, 1800 / 5600, 400 / 4000]),
        ("mfu_per_interval", [0.5, 0.0, 0.1]),
        ("mbu_per_interval", [0.0, 500 / 2800, 0.0]),
    ],
)
def test_rates_are_those_of_the_interval(tmp_path, column, of_module):
    assert per_interval(tmp_path, column)["/m"] == pytest.approx(of_module, abs=1e-6)


def test_there_is_a_value_for_every_interval_also_of_joined_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(framework_node, "MAX_INTERVALS", 2)
    assert per_interval(tmp_path, "element_count_per_interval") == {
        "/": [1600, 0],
        "/m": [1400, 200],
        "/m/a": [500, 200],
        "/m/b": [900],
    }


def test_times_too_large_for_one_key_leave_the_columns_empty(tmp_path):
    late = 1 << 62
    tables = {"Instruction": [instruction("Tensor", late, late + 1, layer="/m")]}
    query = "SELECT DISTINCT hfu_per_interval FROM FrameworkNode"
    assert derived(tmp_path / "p", tables, query) == [(None,)]
