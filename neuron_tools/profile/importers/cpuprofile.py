"""V8's `.cpuprofile`: what `node --cpu-prof`, Chrome's developer tools and VS Code record of JavaScript.

A tree of call frames, and for each sample the node that was running and how long after the one before it was
taken, in microseconds. Lines are counted from 0. Source: the type Profiler.Profile of the DevTools protocol.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.profile.importers.call_stacks import Frame, calls_of_samples, stage_calls
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.json_document import JsonDocument
from neuron_tools.profile.importers.json_text import whole_number
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "V8 CPU profile"
LARGEST_MEMBER_BYTES = 256 << 20
_KEYS = ("nodes", "startTime", "samples", "timeDeltas")
_NOT_RUNNING = frozenset({"(root)", "(idle)"})
_MOST_DEPTH = 1 << 12
MOST_FRAMES = 1 << 25
"""In the stacks of all samples together."""
_LARGEST_NUMBER = 1 << 40
_NS_PER_US = 1_000


def recognise(head: Head) -> bool:
    """Whether the document begins with nodes that have call frames."""
    return head.is_json and "nodes" in head.text[:64].decode(errors="replace") and b'"callFrame"' in head.text


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the calls as those of one thread.

    Raises:
        TraceError: It has no samples, or stacks without end.
    """
    document = JsonDocument(file, LARGEST_MEMBER_BYTES)
    members = {key: document.value() for key in document.members() if key in _KEYS}
    tree = _Tree(_list(members.get("nodes")))
    samples, deltas = (_list(members.get(key)) for key in ("samples", "timeDeltas"))
    count = min(len(samples), len(deltas))
    if not count:
        raise TraceError(f"{file.path} is a CPU profile without samples: record it again.")
    start = whole_number(members.get("startTime"), LARGEST_TIME // _NS_PER_US) or 0
    waits = np.array([whole_number(delta, _LARGEST_NUMBER) or 0 for delta in deltas[:count]], np.float64)
    times = np.minimum((start + np.cumsum(waits)) * _NS_PER_US, LARGEST_TIME).astype(np.int64)
    edges = np.concatenate([times, times[-1:] + int(np.median(waits)) * _NS_PER_US])
    calls = calls_of_samples(_stacks(tree, samples[:count], file), edges)
    lanes = Lanes(recording, lambda device: f"device {device}")
    lanes.process(NO_NUMBER, file.path.stem)
    stage_calls(lanes, lanes.thread(NO_NUMBER, 0, "JavaScript"), tree.frames, calls.finish(int(edges[-1])))
    recording.warn_all(document.damage.sentences())


def _stacks(tree: _Tree, samples: list[Any], file: TraceFile) -> list[list[int]]:
    stacks, frames = [], 0
    for node in samples:
        stacks.append(tree.stack(_key(node)))
        frames += len(stacks[-1])
        if frames > MOST_FRAMES:
            raise TraceError(f"{file.path} has more than {MOST_FRAMES:,} frames in its samples: record less.")
    return stacks


class _Tree:
    """The nodes by number; a stack is put together when it is first asked for.

    Args:
        nodes: As recorded, each with its children or with its parent.
    """

    def __init__(self, nodes: list[Any]) -> None:
        known = [node for node in nodes if isinstance(node, dict) and _key(node.get("id")) != NO_NUMBER]
        self.frames = [_frame(node.get("callFrame")) for node in known]
        self._place_of = {node["id"]: place for place, node in enumerate(known)}
        self._parents = {_key(child): node["id"] for node in known for child in _list(node.get("children"))}
        self._parents |= {node["id"]: _key(node["parent"]) for node in known if "parent" in node}
        self._stacks: dict[int, list[int]] = {}

    def stack(self, number: int) -> list[int]:
        """Places of the frames of a node and its callers, outermost first."""
        if number not in self._stacks:
            self._stacks[number] = self._climbed(number)[::-1]
        return self._stacks[number]

    def _climbed(self, number: int) -> list[int]:
        stack: list[int] = []
        for _ in range(_MOST_DEPTH):
            place = self._place_of.get(number)
            if place is None:
                break
            if self.frames[place].name not in _NOT_RUNNING:
                stack.append(place)
            number = self._parents.get(number, NO_NUMBER)
        return stack


def _frame(told: Any) -> Frame:
    about = told if isinstance(told, dict) else {}
    name, file = about.get("functionName"), about.get("url")
    line = whole_number(about.get("lineNumber"), (1 << 31) - 1)
    return Frame(
        name if isinstance(name, str) and name else "(anonymous)",
        file.removeprefix("file://") if isinstance(file, str) and file else None,
        None if line is None else line + 1,
    )


def _key(told: Any) -> int:
    number = whole_number(told, 1 << 62)
    return NO_NUMBER if number is None else number


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
