"""Rows of each track, kept on disk while a profile is read, and given back in order of start.

A profile's rows come sorted within windows that follow each other in time, nearly. The spool holds the
windows' pieces of each track in one temporary file and joins them again a segment at a time, so that
memory does not grow with the profile.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.profile.timeline.scan import Ints, TrackKey, TrackRows

SEGMENT_SPANS = 1 << 18


@dataclass(frozen=True, slots=True)
class Segment:
    """Spans of one track in ascending order of start, longer ones first where starts are equal.

    Attributes:
        start_ns, duration_ns, row: int64, shape (spans,).
        name: int32, shape (spans,).
        layer: int32, shape (spans,), or None.
    """

    start_ns: Ints
    duration_ns: Ints
    name: npt.NDArray[np.int32]
    row: Ints
    layer: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, chosen: Any) -> Segment:
        """The spans that a slice, a mask or an order chooses."""
        layer = None if self.layer is None else self.layer[chosen]
        return Segment(
            self.start_ns[chosen], self.duration_ns[chosen], self.name[chosen], self.row[chosen], layer
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where one batch's rows of a track stand in the file: bytes from `offset`."""

    offset: int
    spans: int
    first_ns: int
    first_row: int
    duration_type: str
    has_rows: bool
    has_layer: bool


class Spool:
    """Pieces of tracks in a temporary file. Close it, or use it in a `with` statement.

    Args:
        folder: Where the file is made; it has no name there.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=1 << 20)  # noqa: SIM115
        self._pieces: dict[TrackKey, list[_Piece]] = {}
        self._offset = 0
        self._map: mmap.mmap | None = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._map is not None:
            self._map.close()
        self._file.close()

    def add(self, rows: TrackRows) -> None:
        """Keep one batch's rows of a track.

        Raises:
            OSError: The disk is full.
        """
        start = rows.start_ns
        duration = rows.duration_ns
        small = int(duration.max(initial=0)) < 1 << 32
        consecutive = int(rows.row[-1] - rows.row[0]) == len(start) - 1 and bool(
            np.all(np.diff(rows.row) == 1)
        )
        columns = [start, duration.astype(np.uint32) if small else duration, rows.name]
        columns += [] if consecutive else [rows.row]
        columns += [] if rows.layer is None else [rows.layer]
        piece = _Piece(
            self._offset, len(start), int(start[0]), int(rows.row[0]), "u4" if small else "i8",
            not consecutive, rows.layer is not None,
        )  # fmt: skip
        self._pieces.setdefault(rows.key, []).append(piece)
        for column in columns:
            self._file.write(np.ascontiguousarray(column).data)
            self._offset += column.nbytes

    def tracks(self) -> list[TrackKey]:
        """Keys of the tracks, in order of appearance."""
        return list(self._pieces)

    def segments(self, track: TrackKey) -> Iterator[Segment]:
        """A track's spans in order, in segments of about a quarter of a million."""
        pieces = sorted(self._pieces[track], key=lambda piece: piece.first_ns)
        held: list[Segment] = []
        count = 0
        for place, piece in enumerate(pieces):
            held.append(self._read(piece))
            count += piece.spans
            if count >= SEGMENT_SPANS and place + 1 < len(pieces):
                ready, rest = _before(_in_order(held), pieces[place + 1].first_ns)
                held, count = ([rest], len(rest)) if len(rest) else ([], 0)
                if len(ready):
                    yield ready
        if held:
            yield _in_order(held)

    def _read(self, piece: _Piece) -> Segment:
        if self._map is None:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        offset = piece.offset

        def column(kind: str) -> npt.NDArray[Any]:
            nonlocal offset
            values = np.frombuffer(self._map or b"", np.dtype(kind), piece.spans, offset)
            offset += values.nbytes
            return values

        start = column("i8")
        duration = column(piece.duration_type)
        name = column("i4")
        row = column("i8") if piece.has_rows else piece.first_row + np.arange(piece.spans, dtype=np.int64)
        layer = column("i4") if piece.has_layer else None
        # Copies: the map may be closed while views of it live on.
        return Segment(
            start.copy(),
            duration.astype(np.int64),
            name.copy(),
            row.copy(),
            None if layer is None else layer.copy(),
        )


def _in_order(segments: list[Segment]) -> Segment:
    """One segment of all, ordered by start and, at one start, the longest first."""
    joined = segments[0] if len(segments) == 1 else _joined(segments)
    start, duration = joined.start_ns, joined.duration_ns
    step = np.diff(start)
    if bool(np.all(step >= 0)):
        tied = step == 0
        if not bool(np.any(tied & (duration[1:] > duration[:-1]))):
            return joined
    return joined.take(np.lexsort((-duration, start)))


def _joined(segments: list[Segment]) -> Segment:
    layers = [segment.layer for segment in segments if segment.layer is not None]
    return Segment(
        np.concatenate([segment.start_ns for segment in segments]),
        np.concatenate([segment.duration_ns for segment in segments]),
        np.concatenate([segment.name for segment in segments]),
        np.concatenate([segment.row for segment in segments]),
        np.concatenate(layers) if layers else None,
    )


def _before(segment: Segment, time_ns: int) -> tuple[Segment, Segment]:
    """The spans that start before a time, and the others."""
    cut = int(np.searchsorted(segment.start_ns, time_ns))
    return segment.take(slice(0, cut)), segment.take(slice(cut, None))
