"""Builds the timeline index of a profile from its tables, in one pass and in bounded memory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.timeline.blob import BlobWriter
from neuron_tools.profile.timeline.counters import SampleStore
from neuron_tools.profile.timeline.depths import DepthAssigner
from neuron_tools.profile.timeline.labels import Labels
from neuron_tools.profile.timeline.lanes import LaneWriter
from neuron_tools.profile.timeline.modules import ModuleSpans
from neuron_tools.profile.timeline.scan import Names, TrackKey, batches, split
from neuron_tools.profile.timeline.signature import INDEX_VERSION
from neuron_tools.profile.timeline.sources import (
    COUNTER_SOURCES,
    MODULE_LEVEL,
    SPAN_SOURCES,
    CounterSource,
    SpanSource,
)
from neuron_tools.profile.timeline.spool import Spool

HEADER_NAME, DATA_NAME = "index.json", "index.bin"
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
    entries: list[tuple[tuple[object, ...], dict[str, Any]]] = []
    with BlobWriter(folder / DATA_NAME) as blob:
        for source in SPAN_SOURCES:
            entries += _spans(source, parts.get(source.table, ()), names, labels, blob, folder)
        for counter in COUNTER_SOURCES:
            entries += _samples(counter, parts.get(counter.table, ()), labels, blob)
        entries.sort(key=lambda entry: entry[0])
        return {"tracks": [entry[1] for entry in entries], "names": _names(names, blob)}


def _spans(
    source: SpanSource, paths: Sequence[Path], names: Names, labels: Labels, blob: BlobWriter, folder: Path
) -> list[tuple[tuple[object, ...], dict[str, Any]]]:
    if not paths:
        return []
    fields = TABLES[source.table].by_name
    texts = [name for name in source.columns if name in fields and fields[name].type == "string"]
    with Spool(folder) as spool:
        for first_row, batch in batches(paths, source.columns, texts):
            for rows in split(source, first_row, batch, names):
                spool.add(rows)
        found = []
        for key in spool.tracks():
            found += _lanes(source, key, spool, names, labels, blob)
    return found


def _lanes(
    source: SpanSource, key: TrackKey, spool: Spool, names: Names, labels: Labels, blob: BlobWriter
) -> list[tuple[tuple[object, ...], dict[str, Any]]]:
    """Entries of a track and, where its spans stand in modules, of the track of those."""
    lanes: dict[int, LaneWriter] = defaultdict(lambda: LaneWriter(blob))
    module_lanes: dict[int, LaneWriter] = defaultdict(lambda: LaneWriter(blob))
    depths, modules = DepthAssigner(source.nested), ModuleSpans(names)
    for segment in spool.segments(key):
        depth_of = depths.assign(segment.start_ns, segment.duration_ns)
        for depth in range(int(depth_of.max()) + 1):
            lanes[depth].append(segment if not depth_of.any() else segment.take(depth_of == depth))
        for depth, spans in modules.add(segment) if source.layers else ():
            module_lanes[depth].append(spans)
    entries = [_entry(labels.describe(source, key), key, labels, lanes)]
    if module_lanes:
        track = labels.describe(source, key, level=MODULE_LEVEL, title="Modules")
        entries.append(_entry(track, key, labels, module_lanes))
    return entries


def _entry(
    track: Any, key: TrackKey, labels: Labels, lanes: Mapping[int, LaneWriter]
) -> tuple[tuple[object, ...], dict[str, Any]]:
    stored = [lanes[depth].finish() for depth in sorted(lanes)]
    stored = [lane for lane in stored if lane["spans"]]
    counts = {
        "spans": sum(lane["spans"] for lane in stored),
        "depths": len(stored),
        "start_ns": min(lane["start_ns"] for lane in stored),
        "end_ns": max(lane["end_ns"] for lane in stored),
    }
    return labels.order(track, key), {**asdict(track), **counts, "lanes": stored}


def _samples(
    source: CounterSource, paths: Sequence[Path], labels: Labels, blob: BlobWriter
) -> list[tuple[tuple[object, ...], dict[str, Any]]]:
    if not paths:
        return []
    store = SampleStore(source)
    for _, batch in batches(paths, source.columns, ()):
        store.add(batch)
    found = []
    for key, stored in store.finish(blob):
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
