"""Debug annotations of Perfetto events as one JSON object an event."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from neuron_tools.arrays import Bools, Ints
from neuron_tools.profile.importers.interned import InternedTexts
from neuron_tools.profile.importers.json_members import finite_doubles, objects_of_members, quoted
from neuron_tools.profile.importers.json_rows import valid_json
from neuron_tools.profile.importers.protobuf_fields import Messages, valid_texts
from neuron_tools.profile.perfetto_fields import field_number

MOST_LEVELS = 32


_number = partial(field_number, "DebugAnnotation")
NAME_IID, NAME = _number("name_iid"), _number("name")
BOOL, UINT, INT, DOUBLE = (_number(f"{kind}_value") for kind in ("bool", "uint", "int", "double"))
TEXT, TEXT_IID, POINTER = _number("string_value"), _number("string_value_iid"), _number("pointer_value")
JSON = _number("legacy_json_value")
NESTED = tuple(_number(field) for field in ("nested_value", "dict_entries", "array_values"))


def arguments_json(
    events: int,
    row: Ints,
    annotations: Messages,
    epoch: Ints,
    names: InternedTexts,
    texts: InternedTexts,
) -> pa.StringArray:
    """Arguments of events.

    Args:
        events: Number of events.
        row: int64, shape (annotations,), ascending: the event that each annotation belongs to.
        annotations: DebugAnnotation messages.
        epoch: int64, shape (annotations,): stretch in which its numbers are to be looked up.
        names, texts: What the numbers of names and of text values mean.

    Returns:
        JSON objects, shape (events,); null where an event has no arguments.
    """
    if not len(annotations):
        return pa.nulls(events, pa.string())
    iids, has_iid = annotations.number(NAME_IID)
    key = pc.coalesce(names.look_up(epoch, np.where(has_iid, iids, 0)), annotations.texts(NAME), "argument")
    values = _values(annotations, epoch, texts)
    return objects_of_members(events, row, key, values)


def _values(annotations: Messages, epoch: Ints, texts: InternedTexts) -> pa.Array:
    """Values as JSON text; the first kind that is set counts."""
    text_iids, has_text = annotations.number(TEXT_IID)
    candidates = [
        _if(annotations.number(INT), lambda values: pa.array(values).cast(pa.string())),
        _if(annotations.number(UINT), lambda values: pa.array(values.view(np.uint64)).cast(pa.string())),
        _if(annotations.double(DOUBLE), finite_doubles),
        _if(annotations.number(BOOL), lambda values: pa.array(np.where(values != 0, "true", "false"))),
        quoted(pc.coalesce(annotations.texts(TEXT), texts.look_up(epoch, np.where(has_text, text_iids, 0)))),
        _if(annotations.number(POINTER), lambda values: pa.array(values.view(np.uint64)).cast(pa.string())),
        _valid_json(annotations),
    ]
    return pc.coalesce(*candidates, _nested(annotations))


def _if(found: tuple[Any, Bools], convert: Any) -> pa.Array:
    values, present = found
    if not present.any():
        return pa.nulls(len(values), pa.string())
    return pc.if_else(pa.array(present), convert(values), pa.scalar(None, pa.string()))


def _valid_json(annotations: Messages) -> pa.Array:
    starts, stops = annotations.places(JSON)
    if not (starts >= 0).any():
        return pa.nulls(len(starts), pa.string())
    found = valid_texts(valid_json(annotations.data, starts, stops))
    return pa.array(
        [text if text is not None and _is_json(text) else None for text in found.to_pylist()], pa.string()
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _nested(annotations: Messages) -> pa.Array:
    """Dictionaries and lists, which are rare: read one by one by the generated classes."""
    found: list[str | None] = [None] * len(annotations)
    rows = np.unique(np.concatenate([annotations.messages(field)[0] for field in NESTED]))
    for row in rows.tolist():
        try:
            value = _plain(protos.DebugAnnotation.FromString(annotations.content(row)), 0)
        except DecodeError:
            continue
        found[row] = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    return pa.array(found, pa.string())


def _plain(annotation: Any, level: int) -> Any:
    if level > MOST_LEVELS:
        return None
    if annotation.dict_entries:
        return {
            text_of(entry.name) or f"{entry.name_iid}": _plain(entry, level + 1)
            for entry in annotation.dict_entries
        }
    if annotation.array_values:
        return [_plain(element, level + 1) for element in annotation.array_values]
    kind = annotation.WhichOneof("value")
    if kind == "nested_value":
        return _plain_nested(annotation.nested_value, level + 1)
    value = None if kind is None else text_of(getattr(annotation, kind))
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else None


def text_of(value: Any) -> Any:
    """A value as it is; the generated classes give bytes for a text that is no UTF-8."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _plain_nested(nested: Any, level: int) -> Any:
    if level > MOST_LEVELS:
        return None
    if nested.dict_keys:
        return {
            text_of(key): _plain_nested(value, level + 1)
            for key, value in zip(nested.dict_keys, nested.dict_values)
        }
    if nested.array_values:
        return [_plain_nested(value, level + 1) for value in nested.array_values]
    for kind in ("int_value", "double_value", "bool_value", "string_value"):
        if nested.HasField(kind):
            value = text_of(getattr(nested, kind))
            return None if isinstance(value, float) and not np.isfinite(value) else value
    return None
