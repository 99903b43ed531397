"""PyTorch's execution traces in Chakra's schema: which operators called which, with shapes, without times.

What `ExecutionTraceObserver` writes beside a trace of torch.profiler. Operators stand on their threads in the
order of their numbers, each that calls none a microsecond long, the others as long as what they call. The
record function id that Kineto gives an operator too is an argument, so that both can be joined
(https://github.com/mlcommons/chakra, schemas 1.0.1 to 1.1.0).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_text import loads, whole_number
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "PyTorch execution trace"
LARGEST_BYTES = 512 << 20
LEAF_NS = 1_000
_KEYS = frozenset({"schema", "pid", "time", "start_ts", "nodes"})
_FRAME = "[pytorch|profiler|execution_"
"""Begins the names of the nodes that stand for the process and its threads."""
_USER_SCOPE = 7
_LARGEST_NUMBER = 1 << 62


class _Node(NamedTuple):
    """An operator, or what the user annotated.

    Attributes:
        parent: Number of what called it, -1 = nobody.
    """

    number: int
    parent: int
    thread: int
    name: str
    category: str
    arguments: str


def recognise(head: Head) -> bool:
    """Whether the document begins with an execution trace's keys."""
    return not head.is_list and head.json_keys >= _KEYS


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the operators.

    Raises:
        TraceError: It is no execution trace, or too large.
    """
    document = _document(file)
    nodes = _nodes(document["nodes"])
    lanes = Lanes(recording, lambda device: f"device {device}")
    process = whole_number(document.get("pid"), 1 << 31)
    owner = NO_NUMBER if process is None else process
    lanes.process(owner)
    order, starts, ends = _laid_out(nodes)
    recording.warn("Operators that are in no thread's tree were left out.", count=len(nodes) - len(order))
    if order:
        _stage(recording, lanes, owner, [nodes[place] for place in order], starts, ends)
    recording.clock = Clock(None)
    recording.warn("An execution trace has no times: operators stand in their order, a microsecond each.")


def _document(file: TraceFile) -> dict[str, Any]:
    content = file.content(LARGEST_BYTES, "record fewer steps")
    try:
        found = loads(content)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{file.path} is no whole execution trace: record or copy it again.") from error
    if not isinstance(found, dict) or not isinstance(found.get("nodes"), list):
        raise TraceError(f"{file.path} is no execution trace: it has no list of nodes.")
    return found


def _nodes(told: Sequence[Any]) -> list[_Node]:
    """The nodes by number; those that stand for the process and its threads are left out."""
    found: dict[int, _Node] = {}
    for entry in told:
        node = _node(entry) if isinstance(entry, dict) else None
        if node is not None and not node.name.startswith(_FRAME):
            found.setdefault(node.number, node)
    return [found[number] for number in sorted(found)]


def _node(entry: Mapping[str, Any]) -> _Node | None:
    number, name = whole_number(entry.get("id"), _LARGEST_NUMBER), entry.get("name")
    if number is None or not isinstance(name, str):
        return None
    # From 1.0.2 on what is no member of the node itself is a list of attributes.
    attributes = entry.get("attrs")
    listed = attributes if isinstance(attributes, list) else []
    about = dict(entry) | {
        str(each.get("name")): each.get("value") for each in listed if isinstance(each, dict)
    }
    parent = whole_number(about.get("ctrl_deps", about.get("parent")), _LARGEST_NUMBER)
    thread = whole_number(about.get("tid"), 1 << 31)
    category = "user_annotation" if about.get("scope") == _USER_SCOPE else "cpu_op"
    parent, thread = -1 if parent in (None, number) else parent, 0 if thread is None else thread
    return _Node(number, parent, thread, name, category, _arguments(about))


def _arguments(about: Mapping[str, Any]) -> str:
    """As torch.profiler calls them."""
    inputs = about.get("inputs")
    shapes, types = about.get("input_shapes"), about.get("input_types")
    if isinstance(inputs, dict):
        shapes, types = inputs.get("shapes"), inputs.get("types")
    told = {
        "Record function id": about.get("rf_id"), "Sequence number": about.get("seq_id"),
        "Fwd thread id": about.get("fw_tid"), "Input Dims": shapes, "Input type": types,
        "schema": about.get("op_schema") or None,
    }  # fmt: skip
    return json.dumps({name: value for name, value in told.items() if value is not None})


def _laid_out(nodes: Sequence[_Node]) -> tuple[list[int], list[int], list[int]]:
    """Places of the nodes, callers first, with start and end of each in ns; those in circles are left out."""
    places = {node.number: place for place, node in enumerate(nodes)}
    called: defaultdict[int, list[int]] = defaultdict(list)
    for place, node in enumerate(nodes):
        called[places.get(node.parent, -1)].append(place)
    starts, ends = [0] * len(nodes), [0] * len(nodes)
    order: list[int] = []
    now: defaultdict[int, int] = defaultdict(int)
    open_nodes = [(place, False) for place in reversed(called[-1])]
    while open_nodes:
        place, is_over = open_nodes.pop()
        thread = nodes[place].thread
        if is_over:
            ends[place] = now[thread] = max(now[thread], starts[place] + LEAF_NS)
            continue
        starts[place] = now[thread]
        order.append(place)
        open_nodes.append((place, True))
        open_nodes += [(child, False) for child in reversed(called[place])]
    return order, [starts[place] for place in order], [ends[place] for place in order]


def _stage(
    recording: Recording, lanes: Lanes, owner: int, nodes: Sequence[_Node], starts: list[int], ends: list[int]
) -> None:
    lane_of = {thread: lanes.thread(owner, thread) for thread in sorted({node.thread for node in nodes})}
    columns: dict[str, Any] = {
        LANE: pa.array([lane_of[node.thread] for node in nodes], pa.int32()),
        "start_ts": pa.array(np.array(starts, np.int64)),
        "end_ts": pa.array(np.array(ends, np.int64)),
        "name": pa.array([node.name for node in nodes], pa.string()).dictionary_encode(),
        "category": pa.array([node.category for node in nodes], pa.string()).dictionary_encode(),
    }
    if recording.with_arguments:
        columns["arguments_json"] = pa.array([node.arguments for node in nodes], pa.string())
    lanes.add_spans(columns)
