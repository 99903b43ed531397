"""What to write beside tracks: names and headings, from the tables that describe processes and tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from neuron_tools.profile.store.remote import source_of
from neuron_tools.profile.timeline.scan import TrackKey
from neuron_tools.profile.timeline.sources import CounterSource, SpanSource
from neuron_tools.profile.timeline.track import COUNTER, GROUPS, Track, drawing_order

TRACE_TABLES = {"TraceSpan": "trace", "TraceCounter": "counter"}
DEEPEST_TRACK = 8


class Labels:
    """Names of the processes and of the tracks that a profile's TraceTrack declares."""

    def __init__(self, parts: Mapping[str, Sequence[Path]]) -> None:
        self._processes = {row.get("process_idx") or 0: row for row in _rows(parts.get("ProcessInfo", ()))}
        self._tracks = {
            (row.get("process_idx") or 0, row.get("track_idx") or 0): row
            for row in _rows(parts.get("TraceTrack", ()))
        }

    def describe(
        self, source: SpanSource | CounterSource, key: TrackKey, *, level: str = "", title: str = ""
    ) -> Track:
        """A track without its counts.

        Args:
            level, title: In place of the source's.
        """
        declared = self._tracks.get((key.process_idx, key.number), {}) if source.table in TRACE_TABLES else {}
        if isinstance(source, CounterSource):
            kind, unit = COUNTER, declared.get("unit") or source.unit
            name = declared.get("name") or (f"{source.name} {key.number}" if source.number else source.name)
            tail = f"counter/{key.number}" if declared else f"counter/{source.table}"
            tail += f"/{key.number}" if source.number and not declared else ""
        else:
            kind, unit = level or declared.get("kind") or source.level, ""
            text = title or source.title
            name = (
                declared.get("name") or text.format(text=key.text, number=key.number).strip() or source.level
            )
            told_apart = [key.text] * bool(source.texts) + [str(key.number)] * bool(source.number)
            tail = "/".join([TRACE_TABLES.get(source.table, source.again or kind), *told_apart])
        core = key.core_idx if key.core_idx is not None else declared.get("device_idx")
        place = f"p{key.process_idx}" + (f"/core{key.core_idx}" if key.core_idx is not None else "")
        return Track(
            f"{place}/{tail}", kind, name, self._headings(key, kind, core, declared), key.process_idx,
            self._processes.get(key.process_idx, {}).get("rank"), core, source.table, 0, 0, 0, 0, unit or "",
        )  # fmt: skip

    def order(self, track: Track, key: TrackKey) -> tuple[object, ...]:
        """Sorts tracks as they are drawn; those of TraceTrack as they ask for."""
        declared = self._tracks.get((key.process_idx, key.number), {}) if track.table in TRACE_TABLES else {}
        wanted = declared.get("sort_index")
        rank, process, place = drawing_order(track)[:2], drawing_order(track)[2], drawing_order(track)[3]
        return (*rank, process, place, wanted is None, wanted or 0, *drawing_order(track)[4:])

    def _headings(
        self, key: TrackKey, kind: str, core: int | None, declared: Mapping[str, Any]
    ) -> tuple[str, ...]:
        place = [] if core is None else [f"{'Device' if declared else 'NeuronCore'} {core}"]
        group = [] if declared or kind not in GROUPS else [GROUPS[kind]]
        return (self._process(key.process_idx), *place, *self._parents(key.process_idx, declared), *group)

    def _process(self, process_idx: int) -> str:
        row = self._processes.get(process_idx, {})
        title = row.get("name") or short_command(row.get("command") or "") or f"Process {process_idx}"
        rank = row.get("rank")
        return str(title) if rank is None or rank < 0 else f"rank {rank}: {title}"

    def _parents(self, process_idx: int, declared: Mapping[str, Any]) -> list[str]:
        names: list[str] = []
        parent = declared.get("parent_track_idx")
        while parent is not None and len(names) < DEEPEST_TRACK:
            row = self._tracks.get((process_idx, parent), {})
            names.insert(0, str(row.get("name", f"Track {parent}")))
            parent = row.get("parent_track_idx")
        return names


def short_command(command: str) -> str:
    """A command with the names of the program and the script, where it has their full paths.

    Example:
        >>> short_command("/opt/venv/bin/python -u /home/me/train.py --data /data")
        'python -u train.py --data /data'
    """
    words = command.split()
    script = next((place for place, word in enumerate(words[1:], 1) if not word.startswith("-")), 0)
    return " ".join(
        Path(word).name if place in (0, script) and word.startswith("/") else word
        for place, word in enumerate(words)
    )


def _rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Rows of a small table; parts that cannot be read are left out."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        try:
            rows += pq.read_table(source_of(path), partitioning=None).to_pylist()
        except (OSError, pa.ArrowException):
            continue
    return rows
