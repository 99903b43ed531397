"""Recorded graphs: launches with the same nodes are one graph, whose operators the recording tells."""

from __future__ import annotations

from neuron_profile.analysis.traces.graphs import CAPTURE, NAMES, GraphOperator, GraphUse, find_graphs
from tests.unit.neuron_profile.analysis.traces.kineto_events import call, document, kernel, operator
from tests.unit.profile.importers.importing import imported


def recording(api="cuda", told=False, start=0, names=("gemm", "add", "gemm")):
    """A capture of three kernels, which do not run: two of aten::mm, one of aten::add."""
    begin, end = (
        call(f"{api}Stream{what}Capture", start + at, 0) for what, at in (("Begin", 0), ("End", 90))
    )
    parts = [begin]
    for place, (name, kind) in enumerate(zip(names, ("mm", "add", "mm"))):
        at = start + 10 + 20 * place
        told_name = {"kernel": name} if told else {}
        parts += [
            operator(f"aten::{kind}", at, 15),
            call(f"{api}LaunchKernel", at + 5, start + place + 1, **told_name),
        ]
    return [*parts, end]


def replay(start, correlation, durations=(30, 10, 20), api="cuda", names=("gemm", "add", "gemm"), **node):
    """A launch of a graph of three kernels, one after the other."""
    events, at = [call(f"{api}GraphLaunch", start, correlation, 5)], start + 10
    for place, (name, duration) in enumerate(zip(names, durations)):
        numbers = {key: value + place for key, value in node.items()}
        events.append(kernel(name, at, duration, correlation, **{"graph id": 3, **numbers}))
        at += duration
    return events


def test_nodes_belong_to_the_operators_of_the_recording(tmp_path):
    trace = document(*recording(), *replay(200, 50), *replay(400, 51, (40, 10, 20)))
    with imported(tmp_path, trace) as profile:
        found = find_graphs(profile)
    assert found.graphs == (GraphUse(0, 1, 2, 3, 130_000, 10_000, CAPTURE),)
    assert found.operators == (
        GraphOperator(1, "aten::mm", 2, 110_000),
        GraphOperator(1, "aten::add", 1, 20_000),
    )


def test_nodes_are_taken_in_the_order_of_their_numbers(tmp_path):
    """On several streams the second node may begin first."""
    launch = call("cudaGraphLaunch", 200, 50)
    nodes = [
        kernel("gemm", 230, 8, 50, **{"graph node id": 1}),
        kernel("add", 210, 4, 50, **{"graph node id": 2}),
        kernel("gemm", 220, 1, 50, **{"graph node id": 10}),
    ]
    with imported(tmp_path, document(*recording(), launch, *nodes)) as profile:
        found = find_graphs(profile)
    assert [(row.operator, row.device_ns) for row in found.operators] == [
        ("aten::mm", 9000),
        ("aten::add", 4000),
    ]


def test_a_recording_in_another_file_is_found_by_its_kernels(tmp_path):
    other = recording("hip", told=True, names=("gelu", "add", "gelu"))
    mine = recording("hip", told=True, start=500)
    with imported(tmp_path, document(*replay(200, 50, api="hip")), document(*other, *mine)) as profile:
        found = find_graphs(profile)
    assert found.graphs[0].operators_from == CAPTURE
    with imported(tmp_path, document(*replay(200, 50, api="hip")), document(*other)) as profile:
        found = find_graphs(profile)
    assert found.graphs[0].operators_from == ""
    assert [row.operator for row in found.operators] == [""]


def test_without_a_recording_kernels_of_the_same_name_tell(tmp_path):
    eager = [
        operator("aten::mm", 0, 20), call("cudaLaunchKernel", 5, 1), kernel("gemm", 10, 30, 1),
        operator("aten::add", 40, 20), call("cudaLaunchKernel", 45, 2), kernel("both", 50, 30, 2),
        operator("aten::mul", 60, 20), call("cudaLaunchKernel", 65, 3), kernel("both", 80, 30, 3),
        operator("graph_wrapper", 190, 200),
    ]  # fmt: skip
    trace = document(*eager, *replay(200, 50, names=("gemm", "both", "alone")))
    with imported(tmp_path, trace) as profile:
        found = find_graphs(profile)
    assert found.graphs[0].operators_from == NAMES
    assert {row.operator: row.nodes for row in found.operators} == {"aten::mm": 1, "": 2}


def test_other_kernels_make_another_graph(tmp_path):
    trace = document(*replay(200, 50), *replay(400, 51, names=("gemm", "gemm", "gemm")), *replay(600, 52))
    with imported(tmp_path, trace) as profile:
        found = find_graphs(profile)
    assert [(use.graph, use.launches) for use in found.graphs] == [(1, 2), (2, 1)]


def test_a_trace_without_graphs_has_none(tmp_path):
    with imported(tmp_path, document(*recording(), kernel("gemm", 200, 5, 9))) as profile:
        assert find_graphs(profile) is None
