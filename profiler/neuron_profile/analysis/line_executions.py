"""How often a line had run when one of its spans began: where a debugger has to stop.

A profile has no row for each time that Python ran a line, but one for each thing that the line had the host
do. These are grouped: a line begins again where its thread did something else meanwhile, or where what it
does first comes again though nothing that it calls loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from statistics import median
from typing import Any

from neuron_profile.analysis.source_frames import SourceFrame, SourceLine, SourceTexts, load_frames, stack
from neuron_profile.analysis.source_lines import line_entries, looped_lines, most_alike_calls
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_LAUNCHED = """
SELECT coalesce(host.process_idx, 0) AS process, host.start_ts AS start_ns,
    CAST(sum(device.duration_ns) AS BIGINT) AS device_ns
FROM SystemProfileEvents host
JOIN SystemProfileEvents device ON device.flow_id[1] = host.flow_id[1]
    AND coalesce(device.process_idx, 0) = coalesce(host.process_idx, 0)
WHERE host.trace_event_source = 'neuron_rt' AND device.trace_event_source = 'neuron_hw'
GROUP BY ALL
"""
_CALLS = f"""
WITH launched AS ({_LAUNCHED})
SELECT coalesce(span.process_idx, 0) AS process, coalesce(thread_idx, 0) AS thread, start_ts AS start_ns,
    end_ts AS end_ns, name, kind, stack_frame_ids AS stack, coalesce(device_ns, 0) AS device_ns
FROM HostSpan span LEFT JOIN launched
    ON launched.process = coalesce(span.process_idx, 0) AND launched.start_ns = span.start_ts
    AND span.kind IN ('dispatch', 'copy', 'collective')
WHERE coalesce(stack_frame_ids, '') <> ''
ORDER BY process, thread, start_ts, end_ts > start_ts, end_ts DESC, kind <> 'module', length(name)
"""
_LAUNCH_OF = """
SELECT host.start_ts AS at_ns FROM SystemProfileEvents device
JOIN SystemProfileEvents host ON host.flow_id[1] = device.flow_id[1]
    AND coalesce(device.process_idx, 0) = coalesce(host.process_idx, 0)
WHERE host.trace_event_source = 'neuron_rt' AND device.trace_event_source = 'neuron_hw'
    AND coalesce(device.process_idx, 0) = $process AND $at_ns BETWEEN device.start_ts AND device.end_ts
ORDER BY coalesce(device.nc_idx, 0) <> $core, device.start_ts DESC LIMIT 1
"""
_RUNNING_AT = """
SELECT own.source_file AS file, own.source_line AS line FROM HostSpan span
JOIN Frontier own ON own.stack_frame_id = span.stack_frame_ids
WHERE coalesce(span.process_idx, 0) = $process AND own.is_own AND $at_ns BETWEEN start_ts AND end_ts
ORDER BY start_ts DESC, end_ts, span.kind = 'module' LIMIT 1
"""
_FRONTIER = (
    "SELECT source_file AS file, source_line AS line FROM Frontier WHERE stack_frame_id = ? AND is_own"
)
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_HOST_TABLES = ("HostSpan", "HostSample")


class NoLineError(NeuronToolsError):
    """A span has no line of the user's own code at which a program could stop."""


@frozen
class Execution:
    """One execution of a line.

    Attributes:
        start_ns, end_ns: Of what it had the host do.
        device_ns: Time that the device took for what it launched.
    """

    process: int
    start_ns: int
    end_ns: int
    device_ns: int

    @property
    def cost_ns(self) -> int:
        """Time of the host or the device, whichever took longer."""
        return max(self.device_ns, self.end_ns - self.start_ns)


@frozen
class Stop:
    """Where a debugger has to stop.

    Attributes:
        place: The line.
        hit: At which hit of a breakpoint there, counted from 1; 0 where the line's executions are not known.
        number: The execution, counted from 1, of `executions`; 0 where they are not known.
        cost_ns: What it took, of the host or the device, whichever is longer.
        typical_ns: The median of all.
    """

    place: SourceLine
    hit: int = 0
    number: int = 0
    executions: int = 0
    cost_ns: int = 0
    typical_ns: int = 0


def stop_at_line(profile: Profile, place: SourceLine) -> Stop:
    """Where the slowest execution of a line begins."""
    found = executions_of(profile, place)
    if not found:
        return Stop(place)
    slowest = max(range(len(found)), key=lambda index: found[index].cost_ns)
    return _stop(profile, place, found, slowest)


def stop_at_span(profile: Profile, table: str, row: Mapping[str, Any]) -> Stop:
    """Where the execution begins that a span is part of: of the line of the user's own code that was running.

    A span of the device belongs to what launched it: a backward operation's to the line that called
    `backward`.

    Args:
        table: The span's table.
        row: All columns of its row.

    Raises:
        NoLineError: No line of the user's own code was running.
    """
    process, at_ns = int(row.get("process_idx") or 0), int(row["start_ts"])
    if table not in _HOST_TABLES and row.get("trace_event_source") != "neuron_rt":
        at_ns = _launched_at(profile, process, row, at_ns)
    place = _own_line(profile, row) if table in _HOST_TABLES else None
    place = place or _running_at(profile, process, at_ns)
    found = [each for each in executions_of(profile, place) if each.process == process]
    begun = [index for index, each in enumerate(found) if each.start_ns <= at_ns]
    return _stop(profile, place, found, begun[-1]) if begun else Stop(place)


def executions_of(profile: Profile, place: SourceLine) -> list[Execution]:
    """The executions of a line that had the host do something, in order; in the first process with any."""
    through = _Through(load_frames(profile), place, SourceTexts(profile))
    calls = profile.query(_CALLS).to_pylist()
    first = next((call["process"] for call in calls if through.path(call["stack"]) is not None), None)
    by_thread: dict[int, list[Mapping[str, Any]]] = {}
    for call in calls:
        if call["process"] == first:
            by_thread.setdefault(call["thread"], []).append(call)
    found = [each for ordered in by_thread.values() for each in through.executions(ordered)]
    return sorted(found, key=lambda execution: execution.start_ns)


class _Texts:
    """What the captured texts say of lines."""

    def __init__(self, texts: SourceTexts) -> None:
        self._texts = texts
        self._loops: dict[str, frozenset[int] | None] = {}

    def may_loop(self, frames: Iterable[SourceFrame]) -> bool:
        """Whether one of some lines is part of a loop, as far as one can see."""
        return any(self._is_looped(frame) for frame in frames)

    def most_alike(self, frames: Iterable[SourceFrame]) -> int:
        """How often the innermost of some lines, each of which calls the next, does the same at most."""
        return prod(most_alike_calls(self._texts.text(frame.file) or "", frame.line) for frame in frames)

    def _is_looped(self, frame: SourceFrame) -> bool:
        if frame.file not in self._loops:
            text = self._texts.text(frame.file)
            self._loops[frame.file] = None if text is None else looped_lines(text)
        lines = self._loops[frame.file]
        return lines is None or frame.line in lines


@frozen
class _Path:
    """How a stack goes through a line.

    Attributes:
        frame: The line's own part of the stack, from it outwards.
        below: The frames that it calls, innermost first.
    """

    frame: tuple[SourceFrame, ...]
    below: tuple[SourceFrame, ...]


class _Through:
    """Groups calls that go through a line into its executions."""

    def __init__(self, frames: Mapping[str, SourceFrame], place: SourceLine, texts: SourceTexts) -> None:
        self._frames = frames
        self._place = place
        self._texts = _Texts(texts)
        self._known: dict[str, _Path | None] = {}

    def path(self, leaf: str) -> _Path | None:
        """How a stack goes through the line; None where the line is not on it."""
        if leaf not in self._known:
            self._known[leaf] = self._find(leaf)
        return self._known[leaf]

    def _find(self, leaf: str) -> _Path | None:
        chain = stack(self._frames, leaf)
        for index, frame in enumerate(chain):
            if (frame.file, frame.line) == (self._place.file, self._place.line):
                return _Path(tuple(chain[index:]), tuple(chain[:index]))
        return None

    def executions(self, calls: Iterable[Mapping[str, Any]]) -> list[Execution]:
        """The executions among the calls of one thread, in order of their starts."""
        found: list[list[Mapping[str, Any]]] = []
        running: _Running | None = None
        covered_ns = -1
        for call in calls:
            path = self.path(call["stack"])
            if path is None:
                running = running if call["start_ns"] < covered_ns else None
                continue
            if call["end_ns"] > covered_ns:
                covered_ns = call["end_ns"]
                if running is None or running.begins_again(path, call):
                    found.append([])
                    running = _Running(path, call, self._texts)
            found[-1].append(call)
        return [_execution(calls) for calls in found]


class _Running:
    """An execution of a line that goes on until what it did first comes again."""

    def __init__(self, path: _Path, call: Mapping[str, Any], texts: _Texts) -> None:
        self._path = path
        self._first = _key(path, call)
        self._repeats = 0
        self._ends = texts.may_loop(path.frame) and not texts.may_loop(path.below)
        self._alike = texts.most_alike((path.frame[0], *path.below))

    def begins_again(self, path: _Path, call: Mapping[str, Any]) -> bool:
        """Whether a further call of the line, with nothing else between, is another execution's."""
        if path.frame != self._path.frame:
            return True
        self._repeats += _key(path, call) == self._first
        return self._ends and _key(path, call) == self._first and self._repeats % self._alike == 0


def _key(path: _Path, call: Mapping[str, Any]) -> tuple[Any, ...]:
    return (path.below, call["kind"], _NUMBER.sub("#", call["name"]))


def _execution(calls: list[Mapping[str, Any]]) -> Execution:
    return Execution(
        calls[0]["process"],
        calls[0]["start_ns"],
        max(call["end_ns"] for call in calls),
        sum(call["device_ns"] for call in calls),
    )


def _stop(profile: Profile, place: SourceLine, found: list[Execution], index: int) -> Stop:
    entries = line_entries(SourceTexts(profile).text(place.file) or "", place.line)
    typical_ns = round(median(each.cost_ns for each in found))
    return Stop(place, index * entries + 1, index + 1, len(found), found[index].cost_ns, typical_ns)


def _launched_at(profile: Profile, process: int, row: Mapping[str, Any], at_ns: int) -> int:
    """When the host launched what the device does at a time; that time itself where nothing says it."""
    core = int(row.get("pcore_idx") or row.get("nc_idx") or 0)
    parameters = {"process": process, "core": core, "at_ns": at_ns}
    found = profile.query(_LAUNCH_OF, parameters).to_pylist()
    return int(found[0]["at_ns"]) if found else at_ns


def _own_line(profile: Profile, row: Mapping[str, Any]) -> SourceLine | None:
    leaf = str(row.get("stack_frame_ids") or "").split(",")[0]
    found = profile.query(_FRONTIER, [leaf]).to_pylist()
    return SourceLine(**found[0]) if found else None


def _running_at(profile: Profile, process: int, at_ns: int) -> SourceLine:
    found = profile.query(_RUNNING_AT, {"process": process, "at_ns": at_ns}).to_pylist()
    if not found:
        raise NoLineError("No line of your own code was running where this span was launched.")
    return SourceLine(**found[0])
