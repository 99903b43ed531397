"""Builds the timeline index of a profile from its tables, in one pass and in bounded memory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.timeline.blob import BlobWriter
from neuron_tools.profile.timeline.counters import SampleStore
from neuron_tools.profile.timeline.index import DATA_NAME, HEADER_NAME, INDEX_VERSION
from neuron_tools.profile.timeline.labels import Labels
from neuron_tools.profile.timeline.lane_table import LaneTable
from neuron_tools.profile.timeline.scan import Names, TrackKey, TrackRows, batches, split
from neuron_tools.profile.timeline.segment import Segment
from neuron_tools.profile.timeline.sources import (
    COUNTER_SOURCES,
    SPAN_SOURCES,
    CounterSource,
    SpanSource,
)
from neuron_tools.profile.timeline.spool import Spool
from neuron_tools.profile.timeline.track_builder import Entry, TrackBuilder

Parts = Mapping[str, Sequence[Path]]


def build_index(parts: Parts, folder: Path, signature: str) -> None:
    """Build the index of these parts in `folder`; it appears whole or not at all.

    Args:
        parts: Whole parts by table, in order.
        signature: What `parts_signature` says of them; kept in the index.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        header = _build(parts, building)
        text = json.dumps({"version": INDEX_VERSION, "signature": signature, **header}, separators=(",", ":"))
        (building / HEADER_NAME).write_text(text, "utf-8")
        _replace(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _replace(building: Path, folder: Path) -> None:
    building.chmod(0o755)
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        if folder.exists():
            os.replace(folder, old / "old")
        os.replace(building, folder)
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _build(parts: Parts, folder: Path) -> dict[str, Any]:
    names, labels = Names(), Labels(parts)
    entries: list[Entry] = []
    unordered: set[str] = set()
    with BlobWriter(folder / DATA_NAME) as blob:
        for source in SPAN_SOURCES:
            paths = parts.get(source.table, ())
            entries += _spans(source, paths, names, labels, blob, folder, unordered)
        for counter in COUNTER_SOURCES:
            entries += _samples(counter, parts.get(counter.table, ()), labels, blob)
        entries.sort(key=lambda entry: entry[0])
        stored = _names(names, blob)
        begin, kind, _ = blob.write_late()
        tracks = [dict(entry[1]) for entry in entries]
        tables = LaneTable.of([track.pop("lanes", ()) for track in tracks]).store(blob)
        overview = [begin, kind, blob.length - begin]
        header = {"overview": overview, "tracks": tracks, "names": stored, "lanes": tables}
        return {**header, "unordered": sorted(unordered)}


def _spans(
    source: SpanSource,
    paths: Sequence[Path],
    names: Names,
    labels: Labels,
    blob: BlobWriter,
    folder: Path,
    unordered_tables: set[str],
) -> list[Entry]:
    """Entries of a source's tracks; those whose rows do not come in order are read once more.

    Args:
        unordered_tables: Gets the table's name where rows of a track start before earlier ones.
    """
    builders: dict[TrackKey, TrackBuilder] = {}
    for rows in _rows(source, paths, names):
        if rows.key not in builders:
            builders[rows.key] = TrackBuilder(source, rows.key, names, labels, blob)
        builders[rows.key].add(rows)
    found = [entry for builder in builders.values() if builder.is_ordered for entry in builder.finish()]
    if not all(builder.is_ascending for builder in builders.values()):
        unordered_tables.add(source.table)
    unordered = {key for key, builder in builders.items() if not builder.is_ordered}
    if unordered:
        with Spool(folder) as spool:
            for rows in _rows(source, paths, names):
                if rows.key in unordered:
                    spool.add(rows)
            for key in spool.tracks():
                found += _sorted_track(TrackBuilder(source, key, names, labels, blob), spool.segments(key))
    return found


def _rows(source: SpanSource, paths: Sequence[Path], names: Names) -> Iterator[TrackRows]:
    fields = TABLES[source.table].by_name
    texts = [name for name in source.columns if name in fields and fields[name].type == "string"]
    for first_row, batch in batches(paths, source.columns, texts):
        yield from split(source, first_row, batch, names)


def _sorted_track(builder: TrackBuilder, segments: Iterator[Segment]) -> list[Entry]:
    for segment in segments:
        builder.add(segment)
    return builder.finish()


def _samples(source: CounterSource, paths: Sequence[Path], labels: Labels, blob: BlobWriter) -> list[Entry]:
    if not paths:
        return []
    store = SampleStore(source)
    for _, batch in batches(paths, source.columns, ()):
        store.survey(batch)
    for _, batch in batches(paths, source.columns, ()):
        store.write(batch, blob)
    found = []
    for key, stored in store.finish():
        track = labels.describe(source, key)
        counts = {"spans": stored["samples"], "start_ns": stored["start_ns"], "end_ns": stored["end_ns"]}
        found.append((labels.order(track, key), {**asdict(track), **counts, "samples": stored}))
    return found


def _names(names: Names, blob: BlobWriter) -> dict[str, Any]:
    """Where the texts stand, as Arrow has them: offsets and UTF-8 bytes."""
    array = pa.array(names.texts, pa.large_string())
    _, offsets, data = array.buffers()
    length = len(names.texts)
    return {
        "count": length,
        "offsets": blob.append(np.frombuffer(offsets, np.int64, length + 1)),
        "bytes": blob.append(np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)),
    }
