"""Who launched each piece of a device's work: operator, module and source line on the host.

Work and its host call share a correlation id; the operator is the innermost one that was open on the call's
thread, the module the innermost `nn.Module` span. What autograd's threads launch belongs to the module of the
forward operator with the same sequence number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.time.core_spans import integers
from neuron_profile.analysis.traces.device_spans import DEVICE_SPANS, Kind
from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.span_pairs import enclosing_spans
from neuron_tools.profile.reader import Profile

MODULE_MARK = "nn.Module: "
NOBODY = -1
_LAUNCHED = f"""
WITH {DEVICE_SPANS}, calls AS (
    SELECT span.process_idx AS process, span.correlation_id, min(span.start_ts) AS called_ts,
        min_by(span.track_idx, span.start_ts) AS track, bool_or(contains(span.name, 'GraphLaunch')) AS replays
    FROM TraceSpan span JOIN TraceTrack track
        ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
    WHERE track.device_idx IS NULL AND span.correlation_id IS NOT NULL GROUP BY ALL
)
SELECT device.process, device.device_idx AS device, device.name, kind, end_ts - start_ts AS duration_ns,
    coalesce(calls.track, {NOBODY}) AS track, coalesce(called_ts, 0) AS called_ts,
    coalesce(replays, FALSE) AS is_replayed
FROM device JOIN kinds USING (name, category)
LEFT JOIN calls ON calls.process = device.process AND calls.correlation_id = device.correlation_id
WHERE kind != {int(Kind.OTHER)} ORDER BY start_ts, device.id
"""
_HOST = """
SELECT process_idx AS process, track_idx AS track, start_ts, end_ts, id, name FROM TraceSpan
WHERE {condition} ORDER BY process_idx, track_idx, start_ts, end_ts DESC
"""
OPERATORS = "category = 'cpu_op'"
_MODULES = f"category = 'python_function' AND starts_with(name, '{MODULE_MARK}')"
_NUMBER = "TRY_CAST(json_extract_string(arguments_json, '$.\"{key}\"') AS BIGINT)"
_SEQUENCE, _FORWARD_THREAD = (_NUMBER.format(key=key) for key in ("Sequence number", "Fwd thread id"))
_BACKWARD = f"category = 'cpu_op' AND {_SEQUENCE} >= 0 AND {_FORWARD_THREAD} > 0"
_FORWARD_OF = f"""
SELECT process_idx AS process, {_SEQUENCE} AS sequence, min(start_ts) AS called_ts,
    min_by(track_idx, start_ts) AS track
FROM TraceSpan WHERE category = 'cpu_op' AND {_SEQUENCE} >= 0 AND coalesce({_FORWARD_THREAD}, 0) = 0
GROUP BY ALL
"""
_SEQUENCES = f"SELECT id, {_SEQUENCE} AS sequence FROM TraceSpan WHERE {_BACKWARD}"


@dataclass(frozen=True)
class Attribution:
    """Kernels, copies and collectives with who launched them, by start.

    Attributes:
        process, device, kind, duration_ns: (spans,) int64.
        kernels: Names of the spans.
        operator_id: (spans,) int64, TraceSpan.id of the operator; `NOBODY` where none is known.
        operators: Its name; "" where none is known.
        modules: Path of the module, slash-separated; "" where none is known.
        is_backward: (spans,) bool.
        is_replayed: (spans,) bool, launched by a recorded graph.
    """

    process: Ints
    device: Ints
    kind: Ints
    duration_ns: Ints
    kernels: Sequence[str]
    operator_id: Ints
    operators: Sequence[str]
    modules: Sequence[str]
    is_backward: npt.NDArray[np.bool_]
    is_replayed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.process)


@dataclass(frozen=True)
class HostSpans:
    """Spans of the host by thread, start and falling end.

    Attributes:
        process, track, start, end, ids: (spans,) int64; times in ns.
        names: One of each.
    """

    process: Ints
    track: Ints
    start: Ints
    end: Ints
    ids: Ints
    names: Sequence[str]

    def innermost(self, process: Ints, track: Ints, at: Ints) -> Ints:
        """Place of the innermost span that holds each moment of a thread; `NOBODY` without one."""
        found = np.full(len(at), NOBODY, np.int64)
        if not len(self.start) or not len(at):
            return found
        own, asked = _thread_keys(self.process, self.track), _thread_keys(process, track)
        order = np.lexsort((at, asked))
        for key in np.unique(asked).tolist():
            low, high = np.searchsorted(asked[order], [key, key + 1])
            first, last = np.searchsorted(own, [key, key + 1])
            part = np.full(high - low, NOBODY, np.int64)
            enclosing_spans(self.start, self.end, int(first), int(last), at[order[low:high]], part)
            found[order[low:high]] = part
        return found

    def outermost(self) -> HostSpans:
        """Those that begin in none of the others of their thread."""
        keys = _thread_keys(self.process, self.track)
        edges = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)] if len(keys) else []
        is_first = np.ones(len(keys), bool)
        for low, high in pairwise(edges):
            is_first[low + 1 : high] = (
                self.start[low + 1 : high] >= np.maximum.accumulate(self.end[low:high])[:-1]
            )
        kept = np.flatnonzero(is_first)
        return HostSpans(
            self.process[kept], self.track[kept], self.start[kept], self.end[kept], self.ids[kept],
            [self.names[place] for place in kept.tolist()],
        )  # fmt: skip

    def names_at(self, process: Ints, track: Ints, at: Ints) -> list[str]:
        """Name of the innermost span that holds each moment of a thread; "" without one."""
        places = self.innermost(process, track, at).tolist()
        return [self.names[place] if place >= 0 else "" for place in places]


def attribute(profile: Profile) -> Attribution:
    """Who launched the work of the devices of an imported trace."""
    rows = profile.query(_LAUNCHED)
    process, track, at = integers(rows, "process"), integers(rows, "track"), integers(rows, "called_ts")
    operators, modules = host_spans(profile, OPERATORS), host_spans(profile, _MODULES)
    own = np.where(track == NOBODY, NOBODY, operators.innermost(process, track, at))
    paths = _paths(modules)
    module = modules.innermost(process, track, at)
    from_forward, is_backward = _forward_modules(profile, modules, process, track, at)
    module = np.where(is_backward & (module == NOBODY), from_forward, module)
    return Attribution(
        process, integers(rows, "device"), integers(rows, "kind"), integers(rows, "duration_ns"),
        rows["name"].to_pylist(),
        np.where(own == NOBODY, NOBODY, operators.ids[own]) if len(operators.ids) else own,
        [operators.names[place] if place >= 0 else "" for place in own.tolist()],
        [paths[place] if place >= 0 else "" for place in module.tolist()],
        is_backward,
        rows["is_replayed"].to_numpy(),
    )  # fmt: skip


def _forward_modules(
    profile: Profile, modules: HostSpans, process: Ints, track: Ints, at: Ints
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Module of the forward operator that each launch is the backward of, and which launches are backward."""
    backward = host_spans(profile, _BACKWARD)
    place = backward.innermost(process, track, at)
    is_backward = place != NOBODY
    found = np.full(len(at), NOBODY, np.int64)
    if not is_backward.any() or not len(modules.ids):
        return found, is_backward
    numbers = {row["id"]: row["sequence"] for row in profile.query(_SEQUENCES).to_pylist()}
    forward = {
        (row["process"], row["sequence"]): (row["track"], row["called_ts"])
        for row in profile.query(_FORWARD_OF).to_pylist()
    }
    chosen = np.flatnonzero(is_backward)
    ids = backward.ids[place[chosen]].tolist()
    keys = [(one, numbers[number]) for one, number in zip(process[chosen].tolist(), ids)]
    known = np.array([key in forward for key in keys], bool)
    places = [forward[key] for key in keys if key in forward]
    if places:
        tracks, times = (np.array(column, np.int64) for column in zip(*places))
        found[chosen[known]] = modules.innermost(process[chosen[known]], tracks, times)
    return found, is_backward


def _paths(modules: HostSpans) -> list[str]:
    """Path of each module through those around it."""
    keys, paths = _thread_keys(modules.process, modules.track), []
    stack: list[tuple[int, int, str]] = []  # thread, end, path
    for key, start, end, name in zip(
        keys.tolist(), modules.start.tolist(), modules.end.tolist(), modules.names
    ):
        while stack and (stack[-1][0] != key or stack[-1][1] <= start):
            stack.pop()
        own = name.removeprefix(MODULE_MARK)
        path = f"{stack[-1][2]}/{own}" if stack else own
        stack.append((key, end, path))
        paths.append(path)
    return paths


def host_spans(profile: Profile, condition: str) -> HostSpans:
    """Spans of the host's threads.

    Args:
        condition: SQL over the columns of TraceSpan, such as `OPERATORS`.
    """
    rows = profile.query(_HOST.format(condition=condition))
    process, track, start, end, ids = (
        integers(rows, name) for name in ("process", "track", "start_ts", "end_ts", "id")
    )
    return HostSpans(process, track, start, end, ids, rows["name"].to_pylist())


def _thread_keys(process: Ints, track: Ints) -> Ints:
    return process << 32 | track & 0xFFFFFFFF
