"""Recorded graphs (CUDA graphs, HIP graphs) by the operators of their nodes.

One host call launches all kernels of a graph, and none of their operators is open then. They were open when
the graph was recorded: between the begin and the end of a capture, calls that launch kernels only add nodes.
A graph and a capture belong together where the capture has as many of these calls as the graph has nodes and,
where the calls tell the kernels' names (HIP's do), the same ones in the same order. Without one, a kernel
belongs to the operator that launches kernels of its name outside of graphs, if it is the only one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.traces.attribution import OPERATORS, attribute, host_spans
from neuron_profile.analysis.traces.device_spans import DEVICE_SPANS, Kind
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_LAUNCH = "regexp_matches({name}, '^(cuda|cu|hip)GraphLaunch')"
_NODE = """TRY_CAST(json_extract_string(span.arguments_json, '$."graph node id"') AS UBIGINT)"""
_NODES = f"""
WITH {DEVICE_SPANS}, calls AS (
    SELECT process_idx AS process, correlation_id, min(start_ts) AS called_ts,
        min(end_ts - start_ts) AS call_ns
    FROM TraceSpan WHERE {_LAUNCH.format(name="name")} AND correlation_id IS NOT NULL GROUP BY ALL
)
SELECT device.process, device.correlation_id AS launch, called_ts, call_ns, device.name,
    device.end_ts - device.start_ts AS duration_ns
FROM device JOIN kinds USING (name, category)
JOIN calls ON calls.process = device.process AND calls.correlation_id = device.correlation_id
JOIN TraceSpan span ON span.id = device.id
WHERE kind != {int(Kind.OTHER)}
ORDER BY device.process, called_ts, device.correlation_id, {_NODE} NULLS LAST, device.start_ts, device.id
"""
_CAPTURES = """
SELECT process_idx AS process, track_idx AS track, start_ts,
    regexp_matches(name, 'BeginCapture') AS is_begin
FROM TraceSpan WHERE regexp_matches(name, '^(cuda|cu|hip)Stream(Begin|End)Capture')
ORDER BY process_idx, track_idx, start_ts
"""
_CALLS = """
SELECT process_idx AS process, track_idx AS track, start_ts AS called_ts,
    coalesce(json_extract_string(arguments_json, '$.kernel'), '') AS kernel
FROM TraceSpan WHERE process_idx = ? AND track_idx = ? AND start_ts BETWEEN ? AND ?
    AND regexp_matches(name, '^(cuda|cu|hip)(Ext)?(Module)?(Launch(Cooperative)?Kernel|Memcpy|Memset)')
ORDER BY start_ts, id
"""
CAPTURE, NAMES = "capture", "names"


@frozen
class GraphUse:
    """One graph: launches whose nodes are the same kernels in the same order.

    Attributes:
        graph: Number by first launch, from 1.
        nodes: Kernels, copies and fills of one launch.
        device_ns: Time of them all, over all launches.
        call_ns: What the host spent in the launches.
        operators_from: What tells the operators of its nodes: `CAPTURE` all of them, `NAMES` those that it
            can; "" nothing does.
    """

    process: int
    graph: int
    launches: int
    nodes: int
    device_ns: int
    call_ns: int
    operators_from: str


@frozen
class GraphOperator:
    """What the nodes of one operator of a graph did; `operator` is "" where it is not known."""

    graph: int
    operator: str
    nodes: int
    device_ns: int


@frozen
class GraphLaunches:
    """Graphs and the operators of their nodes, both by falling device time."""

    graphs: tuple[GraphUse, ...]
    operators: tuple[GraphOperator, ...]


@dataclass(frozen=True)
class _Capture:
    """Launching calls of one recording: what operator was open at each, and its kernel where that is told."""

    process: int
    operators: Sequence[str]
    kernels: Sequence[str]

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a graph of these nodes can come of it."""
        return len(names) == len(self.kernels) and all(
            told in ("", name) for told, name in zip(self.kernels, names)
        )


@dataclass
class _Graph:
    """The launches of one graph; `node_ns` has the time of each node over all of them."""

    process: int
    names: Sequence[str]
    launches: int
    call_ns: int
    node_ns: Ints


def find_graphs(profile: Profile) -> GraphLaunches | None:
    """Graphs with their nodes' operators; None where none was launched."""
    graphs = _graphs(profile.query(_NODES))
    if not graphs:
        return None
    captures = _captures(profile)
    by_name = _operators_by_name(profile)
    uses, operators = [], []
    for number, graph in enumerate(graphs, 1):
        names, told_by = _operators(graph, captures, by_name)
        device_ns = int(graph.node_ns.sum())
        uses.append(
            GraphUse(graph.process, number, graph.launches, len(names), device_ns, graph.call_ns, told_by)
        )
        operators += _summed(number, names, graph.node_ns)
    return GraphLaunches(
        tuple(sorted(uses, key=lambda use: (-use.device_ns, use.graph))),
        tuple(sorted(operators, key=lambda row: (-row.device_ns, row.graph, row.operator))),
    )


def _graphs(rows: pa.Table) -> list[_Graph]:
    found: dict[tuple[int, tuple[str, ...]], _Graph] = {}
    for process, names, call_ns, node_ns in _launches(rows):
        graph = found.setdefault(
            (process, names), _Graph(process, names, 0, 0, np.zeros(len(names), np.int64))
        )
        graph.launches += 1
        graph.call_ns += call_ns
        graph.node_ns += node_ns
    return list(found.values())


def _launches(rows: pa.Table) -> Iterator[tuple[int, tuple[str, ...], int, Ints]]:
    """Process, kernels, time of the host's call and time of each node of every launch."""
    columns = (rows[name].to_pylist() for name in ("process", "launch", "name", "call_ns", "duration_ns"))
    for (process, _), nodes in groupby(zip(*columns), key=lambda row: row[:2]):
        part = list(nodes)
        yield process, tuple(row[2] for row in part), part[0][3], np.array([row[4] for row in part], np.int64)


def _captures(profile: Profile) -> list[_Capture]:
    """Recordings of graphs in the trace, in order of thread and time."""
    found = []
    operators = None
    for process, track, begin, end in _recorded(profile.query(_CAPTURES)):
        calls = profile.query(_CALLS, [process, track, begin, end])
        if operators is None:
            operators = host_spans(profile, OPERATORS)
        when = (calls[name].to_numpy().astype(np.int64) for name in ("process", "track", "called_ts"))
        found.append(_Capture(process, operators.names_at(*when), calls["kernel"].to_pylist()))
    return found


def _recorded(rows: pa.Table) -> Iterator[tuple[int, int, int, int]]:
    """Process, thread, begin and end of each recording; one without an end is none."""
    begun: dict[tuple[int, int], int] = {}
    for row in rows.to_pylist():
        key = row["process"], row["track"]
        if row["is_begin"]:
            begun[key] = row["start_ts"]
        elif key in begun:
            yield (*key, begun.pop(key), row["start_ts"])


def _operators_by_name(profile: Profile) -> dict[str, str]:
    """The operator that launches each kernel outside of graphs, of kernels that only one does."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    work = attribute(profile)
    for kernel, operator, is_replayed in zip(work.kernels, work.operators, work.is_replayed.tolist()):
        if operator and not is_replayed:
            found[kernel].add(operator)
    return {kernel: names.pop() for kernel, names in found.items() if len(names) == 1}


def _operators(
    graph: _Graph, captures: Sequence[_Capture], by_name: dict[str, str]
) -> tuple[Sequence[str], str]:
    """Operator of each node, and what tells it; recordings of the graph's own process come first."""
    fitting = sorted(
        (capture for capture in captures if capture.fits(graph.names)),
        key=lambda capture: capture.process != graph.process,
    )
    if fitting:
        return fitting[0].operators, CAPTURE
    names = [by_name.get(name, "") for name in graph.names]
    return names, NAMES if any(names) else ""


def _summed(number: int, names: Sequence[str], node_ns: Ints) -> list[GraphOperator]:
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, duration_ns in zip(names, node_ns.tolist()):
        sums[name][0] += 1
        sums[name][1] += duration_ns
    return [GraphOperator(number, name, nodes, time) for name, (nodes, time) in sums.items()]
