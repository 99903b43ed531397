"""PyTorch's execution traces: operators by what called them, with shapes, in an order instead of times."""

from __future__ import annotations

import json

import pytest

from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.verify import verify
from tests.fixtures.profiler_exports import PID, execution_trace
from tests.unit.profile.importers.importing import imported, rows, spans, written

NO_TIMES = "trace: An execution trace has no times: operators stand in their order, a microsecond each."


def test_operators_hold_what_they_call(tmp_path):
    with imported(tmp_path, execution_trace()) as profile:
        found = spans(profile)
        categories = dict(rows(profile, "SELECT name, category FROM TraceSpan"))
        process = rows(profile, "SELECT process_id FROM ProcessInfo")
        assert verify(profile) == []
    assert found == [
        ("thread 1", "## forward ##", 0, 2_000),
        ("thread 1", "aten::linear", 0, 2_000),
        ("thread 1", "aten::t", 0, 1_000),
        ("thread 2", "MmBackward0", 0, 1_000),
        ("thread 1", "aten::mm", 1_000, 2_000),
    ]
    assert (categories["## forward ##"], categories["aten::mm"]) == ("user_annotation", "cpu_op")
    assert process == [(PID,)]


def test_shapes_and_the_record_function_id_are_arguments(tmp_path):
    with imported(tmp_path, execution_trace()) as profile:
        told = rows(profile, "SELECT arguments_json FROM TraceSpan WHERE name = 'aten::mm'")
    assert json.loads(told[0][0]) == {
        "Record function id": 16, "Sequence number": 5, "Fwd thread id": 0, "Input Dims": [[4, 8]],
        "Input type": ["Tensor(float)"],
    }  # fmt: skip


def test_the_older_schema_has_its_attributes_in_the_node(tmp_path):
    node = {
        "name": "aten::mm", "id": 7, "rf_id": 4, "parent": 2, "seq_id": -1, "scope": 0, "tid": 3, "fw_tid": 0,
        "op_schema": "aten::mm(Tensor self, Tensor mat2) -> Tensor", "inputs": [[1]],
        "input_shapes": [[4, 8]], "input_types": ["Tensor(float)"],
    }  # fmt: skip
    with imported(tmp_path, execution_trace(schema="1.0.1", nodes=[node])) as profile:
        told = rows(profile, "SELECT arguments_json FROM TraceSpan")
        assert spans(profile) == [("thread 3", "aten::mm", 0, 1_000)]
    assert json.loads(told[0][0])["Input Dims"] == [[4, 8]]


def test_operators_that_call_each_other_in_a_circle_are_told_of(tmp_path):
    circle = [
        {"id": 3, "ctrl_deps": 4, "name": "a"}, {"id": 4, "ctrl_deps": 3, "name": "b"},
        {"id": 5, "ctrl_deps": 5, "name": "c"}, "no node", {"id": "x", "name": 3},
    ]  # fmt: skip
    path = written(tmp_path, "trace", execution_trace(nodes=circle))
    report = import_traces([path], tmp_path / "out.nprof")
    assert report.rows["TraceSpan"] == 1
    assert report.warnings == (
        "trace: Operators that are in no thread's tree were left out.",
        NO_TIMES,
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps(execution_trace()).encode()[:-30], "is no whole execution trace"),
        (json.dumps(execution_trace(nodes={})).encode(), "it has no list of nodes"),
    ],
)
def test_what_is_no_execution_trace_is_one_sentence(tmp_path, content, reason):
    path = written(tmp_path, "trace", content)
    with pytest.raises(TraceError, match=reason):
        import_traces([path], tmp_path / "out.nprof")
