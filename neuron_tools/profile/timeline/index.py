"""The timeline index of a profile, mapped into memory: tracks, pixels of any range, spans."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.timeline.blob import Blob, mapped_bytes
from neuron_tools.profile.timeline.drawing import ALL_DEPTHS, LaneDrawer
from neuron_tools.profile.timeline.dtypes import columns, numpy_dtype
from neuron_tools.profile.timeline.lane import Lane
from neuron_tools.profile.timeline.lane_table import LaneTable
from neuron_tools.profile.timeline.pixels import pixel_edges
from neuron_tools.profile.timeline.read_ahead import ReadAhead
from neuron_tools.profile.timeline.stored_tracks import SAMPLES_PER_BLOCK, check_samples, track_of

INDEX_VERSION = 6
HEADER_NAME, DATA_NAME = "index.json", "index.bin"
SPAN_SCHEMA = columns(
    "track int32, depth int32, pixel int32, count int64, busy_share float32, span_row int64, "
    "span_start_ns int64, span_duration_ns int64, span_name text"
)
RELATIVE_SPAN_SCHEMA = pa.schema(
    [
        field.with_type(pa.float32()) if field.name in ("span_start_ns", "span_duration_ns") else field
        for field in SPAN_SCHEMA
    ]
)
_START, _DURATION = (SPAN_SCHEMA.get_field_index(name) for name in ("span_start_ns", "span_duration_ns"))
MOST_MAPPED_BYTES = 7 << 26
COUNTER_SCHEMA = columns(
    "track int32, pixel int32, count int64, least float64, greatest float64, mean float64"
)
SPANS_SCHEMA = columns("depth int32, start_ns int64, duration_ns int64, name text, row int64")


class IndexMismatchError(Exception):
    """The stored index is absent, damaged, of another version, or belongs to other tables."""


class TimelineIndex:
    """An index that stands in a folder.

    Attributes:
        tracks: All tracks, in the order in which they are drawn.
        names: The spans' names, by code.
        unordered: Tables in which rows of a track start before earlier ones.

    Raises:
        IndexMismatchError: It does not stand there, or does not belong to tables of that signature.
    """

    def __init__(self, folder: Path, signature: str) -> None:
        try:
            header = json.loads((folder / HEADER_NAME).read_bytes())
            if header.get("version") != INDEX_VERSION or header.get("signature") != signature:
                raise IndexMismatchError(f"{folder} belongs to other tables.")
            self._blob = Blob(folder / DATA_NAME)
            self._blob.want(header["overview"])
            self._table = LaneTable.load(self._blob, header["lanes"])
            self._stored: list[dict[str, Any]] = header["tracks"]
            self.tracks = tuple(track_of(stored) for stored in self._stored)
            self._table.check_tracks(len(self.tracks))
            for stored in self._stored:
                check_samples(stored, self._blob)
            self._drawer = LaneDrawer(self._table, self._blob)
            levels = self._table.level_stretches()
            self._ahead = ReadAhead(folder / DATA_NAME, len(self._blob), levels)
            names = header["names"]
            self.names = _texts(self._blob, names)
            self.unordered = frozenset(header["unordered"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise IndexMismatchError(f"{folder} has no usable index: {error}") from error
        self._lanes: dict[int, list[Lane]] = {}

    def pixels(
        self,
        tracks: Sequence[int],
        start_ns: int,
        end_ns: int,
        pixels: int,
        *,
        depths: int | None = None,
        relative: bool = False,
    ) -> pa.RecordBatch:
        """The pixels of tracks of spans; see `Profile.timelines`.

        Args:
            tracks: Places in `tracks`.
        """
        edges = pixel_edges(start_ns, end_ns, pixels)
        columns = self._drawer.draw(tracks, edges, ALL_DEPTHS if depths is None else depths)
        self._forget_much()
        if self._blob.is_whole:
            self._ahead.begin()
        if not relative:
            return self._batch(SPAN_SCHEMA, [[column] for column in columns], start_ns, end_ns, pixels)
        start, duration = columns[_START], columns[_DURATION]
        near = (*columns[:_START], start - start_ns, duration, *columns[_DURATION + 1 :])
        return self._batch(RELATIVE_SPAN_SCHEMA, [[column] for column in near], start_ns, end_ns, pixels)

    def counter_pixels(
        self, tracks: Sequence[int], start_ns: int, end_ns: int, pixels: int
    ) -> pa.RecordBatch:
        """The pixels of counters; see `Profile.counters`."""
        edges = pixel_edges(start_ns, end_ns, pixels)
        columns: list[list[npt.NDArray[Any]]] = [[] for _ in COUNTER_SCHEMA]
        for track in tracks:
            stored = self._stored[track].get("samples")
            if stored is None:
                continue
            drawn = _counter_pixels(self._blob, stored, edges)
            values = (np.full(len(drawn[0]), track), *drawn)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        return self._batch(COUNTER_SCHEMA, columns, start_ns, end_ns, pixels)

    def spans(self, track: int, start_ns: int, end_ns: int, limit: int) -> pa.RecordBatch:
        """The spans of a track that overlap a range, by start then depth, at most `limit`."""
        parts = []
        for lane in self.lanes(track):
            found = lane.between(start_ns, end_ns, limit)
            depth = np.full(len(found.row), lane.depth)
            parts.append((depth, found.start_ns, found.duration_ns, found.name, found.row))
        columns = [np.concatenate(column) for column in zip(*parts)] if parts else [np.zeros(0, np.int64)] * 5
        order = np.lexsort((columns[0], columns[1]))[:limit]
        return self._batch(SPANS_SCHEMA, [[column[order]] for column in columns], start_ns, end_ns, 0)

    def _forget_much(self) -> None:
        """Ranges drawn all over a large index would map it whole into this process."""
        if mapped_bytes() > MOST_MAPPED_BYTES:
            self._blob.forget()

    def lanes(self, track: int) -> list[Lane]:
        """The lanes of a track, by depth; none of a counter."""
        lanes = self._lanes.get(track)
        if lanes is None:
            lanes = [Lane(self._table, place, self._blob) for place in self._drawer.lanes_of(track)]
            self._lanes[track] = lanes
        return lanes

    def _batch(
        self,
        schema: pa.Schema,
        columns: list[list[npt.NDArray[Any]]],
        start_ns: int,
        end_ns: int,
        pixels: int,
    ) -> pa.RecordBatch:
        arrays = [
            self._named(np.concatenate(parts) if parts else np.zeros(0, np.int64))
            if pa.types.is_dictionary(field.type)
            else pa.array(_as(parts, numpy_dtype(field.type)), field.type)
            for field, parts in zip(schema, columns, strict=True)
        ]
        metadata = {"start_ns": str(start_ns), "end_ns": str(end_ns), "pixels": str(pixels)}
        return pa.RecordBatch.from_arrays(arrays, schema=schema.with_metadata(metadata))

    def _named(self, codes: Ints) -> pa.DictionaryArray:
        encoded = pa.array(codes).dictionary_encode()
        known = encoded.dictionary.to_numpy()
        known = np.where((known >= 0) & (known < len(self.names)), known, 0)
        texts = self.names.take(pa.array(known)).cast(pa.string())
        return pa.DictionaryArray.from_arrays(encoded.indices, texts)


def _as(parts: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    if len(parts) == 1:
        return parts[0].astype(kind, copy=False)
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.zeros(0, kind)


def _texts(blob: Blob, stored: dict[str, Any]) -> pa.LargeStringArray:
    offsets, data = blob.array(stored["offsets"]), blob.array(stored["bytes"])
    is_whole = len(offsets) == stored["count"] + 1 and offsets[0] >= 0 and offsets[-1] <= len(data)
    if not is_whole or bool(np.any(offsets[1:] < offsets[:-1])):
        raise ValueError("its names do not fit together")
    return pa.LargeStringArray.from_buffers(stored["count"], pa.py_buffer(offsets), pa.py_buffer(data))


def _counter_pixels(blob: Blob, stored: dict[str, Any], edges: Ints) -> tuple[npt.NDArray[Any], ...]:
    """Pixel, samples, least, greatest and mean, for the pixels in which a counter has samples."""
    time, value = blob.array(stored["time"]), blob.array(stored["value"])
    limits = np.iinfo(time.dtype)
    needles = np.clip(edges - stored["start_ns"], limits.min, limits.max).astype(time.dtype)
    beyond = edges - stored["start_ns"] > limits.max
    found = np.where(beyond, len(time), np.searchsorted(time, needles))
    place = np.maximum.accumulate(found)  # which it is, unless the times are in disorder
    kept = np.flatnonzero(np.diff(place))
    if not len(kept):
        return tuple(np.zeros(0) for _ in range(5))
    if place[-1] - place[0] <= len(edges) * SAMPLES_PER_BLOCK:
        edge, least, greatest, total = place, value, value, value
    else:  # whole blocks: a sample counts at most one block early
        edge = place // SAMPLES_PER_BLOCK
        least, greatest, total = (blob.array(stored[name]) for name in ("least", "greatest", "total"))
        edge[-1] = max(edge[-1], edge[0] + 1)
        kept = np.flatnonzero(np.diff(edge))
    first, last = edge[:-1][kept], int(edge[-1])
    count = np.diff(place)[kept] if edge is place else np.diff(edge)[kept] * SAMPLES_PER_BLOCK
    return (
        kept,
        count,
        np.minimum.reduceat(least[:last], first),
        np.maximum.reduceat(greatest[:last], first),
        np.add.reduceat(total[:last], first) / count,
    )
