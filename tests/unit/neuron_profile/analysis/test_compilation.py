"""Compilations are listed with their time, measured or estimated, and grouped by function."""

from __future__ import annotations

import neuron_tools
from neuron_profile.analysis.compilation import by_function, estimated_ns, find_compilations
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.neuron_profile.small_capture import METADATA

ROWS = {
    "executable_idx": [1, 2, 3, 4],
    "process_idx": [0, 0, 0, 0],
    "name": ["step_1_forward", "step_2_forward", "other", "aten::mul"],
    "kind": ["graph", "graph", "graph", "eager"],
    "instruction_count": [10, 20, 30, 5],
    "duration_ns": [1, 1, 1, 1],
    "compile_time_ns": [None, 77, None, None],
    "hlo_operation_count": [1, 1, 1, 1],
    "execution_count": [1, 1, 1, 1],
}


def compilations(tmp_path):
    writer = ProfileWriter(tmp_path / "compiled.nprof", METADATA)
    writer.append("Executable", ROWS)
    writer.close(True)
    with neuron_tools.open_profile(tmp_path / "compiled.nprof") as profile:
        return find_compilations(profile)


def test_graphs_are_listed_with_their_time(tmp_path):
    found = [(each.function, each.compile_ns, each.estimated) for each in compilations(tmp_path)]
    assert found == [
        ("step_forward", estimated_ns(10), True),
        ("step_forward", 77, False),
        ("other", estimated_ns(30), True),
    ]


def test_one_function_is_one_group(tmp_path):
    groups = by_function(compilations(tmp_path))
    assert {name: len(group) for (_, name), group in groups.items()} == {"step_forward": 2, "other": 1}


def test_larger_graphs_take_longer():
    assert estimated_ns(1000) > estimated_ns(10) > 0
