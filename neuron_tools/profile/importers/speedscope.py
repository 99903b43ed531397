"""speedscope's own format, which py-spy, pyinstrument, rbspy, stackprof and others write of a host's calls.

Each of the file's profiles is a thread. One that is `sampled` has a stack and a weight for each sample, one
that is `evented` the begins and ends of calls. Source: file-format-spec.ts of speedscope.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from neuron_tools.profile.importers.call_stacks import CallStacks, Frame, calls_of_samples, stage_calls
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.json_document import JsonDocument
from neuron_tools.profile.importers.json_rows import KeySet
from neuron_tools.profile.importers.json_text import loads, whole_number
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "speedscope"
UNIT_NS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9, "none": 1}
LARGEST_PROFILE_BYTES = 128 << 20
_SCHEMA = b"speedscope.app/file-format-schema"
_PROFILE = KeySet(["type", "name", "unit", "startValue", "endValue", "events", "samples", "weights"])
_UNNAMED = Frame("unknown")


def recognise(head: Head) -> bool:
    """Whether the document names speedscope's schema, or has frames and profiles."""
    return head.is_json and (_SCHEMA in head.text[:4096] or {"shared", "profiles"} <= head.json_keys)


def read(file: TraceFile, recording: Recording) -> None:
    """Stages each profile as a thread.

    Raises:
        TraceError: None of its profiles is of time.
    """
    document = JsonDocument(file, LARGEST_PROFILE_BYTES)
    reader = _Reader(recording)
    name = None
    for key in document.members():
        if key == "profiles":
            for rows in document.objects(_PROFILE):
                members = {key: rows.json(key).to_pylist() for key in _PROFILE.numbers}
                for values in zip(*members.values()):
                    reader.add({k: loads(text) for k, text in zip(members, values) if text is not None})
        elif key == "shared":
            reader.frames = _frames(document.value())
        elif key == "name":
            name = document.value()
    reader.finish(name if isinstance(name, str) and name else file.path.stem)
    recording.warn_all(document.damage.sentences())


class _Reader:
    """Threads, whose frames may be told only after them."""

    def __init__(self, recording: Recording) -> None:
        self.frames: list[Frame] = []
        self._recording = recording
        self._threads: list[tuple[str, Any]] = []
        self._units: set[str] = set()

    def add(self, profile: dict[str, Any]) -> None:
        """Take one of the file's profiles."""
        unit, name = str(profile.get("unit")), profile.get("name")
        title = name if isinstance(name, str) and name else f"thread {len(self._threads)}"
        if unit == "none":
            self._recording.warn("Its times have no unit: 1 is shown as 1 ns.")
        elif unit not in UNIT_NS:
            self._units.add(unit)
            self._recording.warn(f"{title} was left out: its unit is {unit}, no time.")
            return
        calls, end_ns = (_evented if profile.get("type") == "evented" else _sampled)(profile, UNIT_NS[unit])
        if calls.mismatched:
            self._recording.warn("Calls that ended out of order were closed.", count=calls.mismatched)
        self._threads.append((title, calls.finish(end_ns)))

    def finish(self, name: str) -> None:
        """Stage what was taken."""
        if not self._threads:
            units = ", ".join(sorted(self._units)) or "none"
            raise TraceError(
                f"{self._recording.source} has no calls with times (units: {units}): "
                "export a profile in seconds, such as `py-spy record --format speedscope` writes."
            )
        lanes = Lanes(self._recording, lambda device: f"device {device}")
        lanes.process(NO_NUMBER, name)
        for number, (title, calls) in enumerate(self._threads):
            most = int(calls[0].max(initial=-1)) + 1
            frames = [*self.frames, *[_UNNAMED] * (most - len(self.frames))]
            stage_calls(lanes, lanes.thread(NO_NUMBER, number, title), frames, calls)


def _frames(shared: Any) -> list[Frame]:
    told = shared.get("frames") if isinstance(shared, dict) else None
    return [_frame(one) for one in told] if isinstance(told, list) else []


def _frame(told: Any) -> Frame:
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return _UNNAMED
    file, line = told.get("file"), told.get("line")
    known = file if isinstance(file, str) and file else None
    return Frame(told["name"], known, whole_number(line, 1 << 31) or None)


def _sampled(profile: dict[str, Any], unit_ns: int) -> tuple[CallStacks, int]:
    samples, weights = _list(profile, "samples"), _list(profile, "weights")
    stacks = [_stack(one) for one in samples[: len(weights)]]
    widths = np.array([max(_number(weight), 0.0) for weight in weights[: len(stacks)]], np.float64)
    start = _number(profile.get("startValue"))
    edges = (start + np.concatenate([[0.0], np.cumsum(widths)])) * unit_ns
    edges_ns = np.rint(np.clip(edges, -LARGEST_TIME, LARGEST_TIME)).astype(np.int64)
    return calls_of_samples(stacks, edges_ns), int(edges_ns[-1])


def _evented(profile: dict[str, Any], unit_ns: int) -> tuple[CallStacks, int]:
    calls, time_ns = CallStacks(), _time_ns(profile.get("startValue"), unit_ns)
    for event in _list(profile, "events"):
        if not isinstance(event, dict) or not _is_frame(event.get("frame")):
            continue
        time_ns = max(time_ns, _time_ns(event.get("at"), unit_ns))
        if event.get("type") == "O":
            calls.open(event["frame"], time_ns)
        elif event.get("type") == "C":
            calls.close(event["frame"], time_ns)
    return calls, max(time_ns, _time_ns(profile.get("endValue"), unit_ns))


def _list(profile: dict[str, Any], key: str) -> list[Any]:
    value = profile.get(key)
    return value if isinstance(value, list) else []


def _stack(told: Any) -> list[int]:
    return [frame for frame in told if _is_frame(frame)] if isinstance(told, list) else []


def _is_frame(told: Any) -> bool:
    return whole_number(told, 1 << 24) is not None


def _number(told: Any) -> float:
    is_number = isinstance(told, (int, float)) and math.isfinite(told)
    return float(min(max(told, -LARGEST_TIME), LARGEST_TIME)) if is_number else 0.0


def _time_ns(told: Any, unit_ns: int) -> int:
    return round(min(max(_number(told) * unit_ns, -LARGEST_TIME), LARGEST_TIME))
