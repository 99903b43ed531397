"""What events of a rocpd database carry as JSON: messages of markers, call stacks, lines."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neuron_tools.profile.importers.json_text import loads

_EMPTY = frozenset({None, "", "{}", "[]", "null"})
_LARGEST_LINE = 1 << 31


class EventDetails(NamedTuple):
    """Of each row: all null where its event carries nothing."""

    messages: pa.Array
    arguments: pa.Array
    files: pa.Array
    lines: pa.Array


class _Detail(NamedTuple):
    message: str | None = None
    arguments: str | None = None
    file: str | None = None
    line: int | None = None


_NOTHING = _Detail()


def details_of_events(extdata: pa.Array, call_stacks: pa.Array, line_info: pa.Array) -> EventDetails:
    """Takes apart what events carry; each different one once.

    Args:
        extdata: JSON objects; `message` names a marker.
        call_stacks: JSON of the frames.
        line_info: JSON; `inlined` of ROCm Systems Profiler has the line in the source.

    Returns:
        Messages, all else as one JSON object, and lines of the source.
    """
    coded = [column.dictionary_encode() for column in (extdata, call_stacks, line_info)]
    carried = [
        np.array([text not in _EMPTY for text in each.dictionary.to_pylist()] + [False]) for each in coded
    ]
    places = [each.indices.fill_null(-1).to_numpy(zero_copy_only=False) for each in coded]
    known: dict[tuple[str | None, ...], _Detail] = {}
    found = [_NOTHING] * len(extdata)
    for row in np.flatnonzero(np.any([mask[place] for mask, place in zip(carried, places)], axis=0)).tolist():
        key = (extdata[row].as_py(), call_stacks[row].as_py(), line_info[row].as_py())
        if key not in known:
            known[key] = _detail(*map(_value, key))
        found[row] = known[key]
    return EventDetails(
        pa.array([each.message for each in found], pa.string()),
        pa.array([each.arguments for each in found], pa.string()),
        pa.array([each.file for each in found], pa.string()),
        pa.array([each.line for each in found], pa.int32()),
    )


def _detail(extdata: Any, call_stack: Any, line_info: Any) -> _Detail:
    told = dict(extdata) if isinstance(extdata, dict) else {}
    message = told.pop("message", None)
    members = {**told, "call stack": call_stack, "line info": line_info}
    file, line = _place(line_info)
    return _Detail(message if isinstance(message, str) and message else None, _json(members), file, line)


def _place(line_info: Any) -> tuple[str | None, int | None]:
    inlined = line_info.get("inlined") if isinstance(line_info, dict) else None
    if not isinstance(inlined, dict) or not isinstance(inlined.get("location"), str):
        return None, None
    text = str(inlined.get("line"))
    line = int(text) if text.isascii() and text.isdecimal() and len(text) < 11 else 0
    return (inlined["location"], line) if 0 < line < _LARGEST_LINE else (None, None)


def _value(text: str | None) -> Any:
    """The value of JSON text; None where it is empty or no JSON."""
    try:
        return None if text in _EMPTY else loads(str(text))
    except (ValueError, RecursionError):
        return None


def _json(members: dict[str, Any]) -> str | None:
    kept = {name: value for name, value in members.items() if value is not None}
    try:
        return json.dumps(kept, ensure_ascii=False, allow_nan=False) if kept else None
    except (ValueError, RecursionError):
        return None
