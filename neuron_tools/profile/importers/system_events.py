"""Events of AWS's system profile JSON: where they happened and what made them, told in one key, `group`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.export.json_text import json_objects
from neuron_tools.profile.importers.json_rows import JsonRows, KeySet
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.sections import PLACE_KEYS, TIME_KEYS, Section, stage_rows

FRAMEWORK, RUNTIME = "framework", "neuron_rt"
_CORE_GROUP = "nrt-nc-"
_OTHER_KEYS = ("tensor_id", "tensor_name", "size", "parent_id", "type", "model_name", "kind")

EVENT_SECTION = Section(
    "SystemProfileEvents",
    {name: name for name in ("id", "name", "instance_id", "process_id", "thread_id")},
    is_span=True,
)
EVENT_KEYS = KeySet(
    tuple(
        dict.fromkeys(
            (*EVENT_SECTION.needed(), "group", "lnc_idx", "nc_idx", "trace_event_source", "attributes",
             *_OTHER_KEYS, *PLACE_KEYS, *TIME_KEYS)
        )
    )
)  # fmt: skip


class SystemEvents:
    """Stages the events of a file; those without a number are counted on."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def add(self, rows: JsonRows) -> None:
        """Stages some rows of the list `trace_events`."""
        stage_rows(EVENT_SECTION, rows, self._recording, self._further)

    def _further(self, rows: JsonRows) -> dict[str, pa.Array]:
        groups = rows.texts("group")
        texts = groups.dictionary.to_pylist()
        core = pa.array([_core(text) for text in texts], pa.int64()).take(groups.indices)
        source = pa.array(
            [FRAMEWORK if text.startswith(FRAMEWORK) else RUNTIME for text in texts], pa.string()
        )
        given = rows.texts("trace_event_source").cast(pa.string())
        made_by = pc.coalesce(given, source.take(groups.indices), RUNTIME)
        others = {key: rows.texts(key) for key in _OTHER_KEYS if rows.has(key).any()}
        attributes = pc.coalesce(rows.texts("attributes").cast(pa.string()), json_objects(others, len(rows)))
        number = self._recording.row_counts["SystemProfileEvents"]
        counted = pa.array(range(number, number + len(rows)), pa.int64())
        return {
            "id": pc.coalesce(rows.integers("id"), counted),
            "nc_idx": pc.coalesce(rows.integers("nc_idx"), rows.integers("lnc_idx"), core),
            "trace_event_source": made_by.dictionary_encode(),
            "extra_attributes_json": attributes,
        }


def _core(group: str) -> int | None:
    digits = group.removeprefix(_CORE_GROUP)
    return int(digits) if group.startswith(_CORE_GROUP) and digits.isdecimal() and len(digits) < 6 else None
