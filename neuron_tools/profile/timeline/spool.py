"""Rows of tracks whose windows overlap in time, kept on disk until they can be given back in order.

Rows come sorted within windows. Where a track's windows do not simply follow each other, the spool holds
their pieces in one temporary file and joins them a segment at a time, so that memory does not grow with the
profile.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline.blob import fitting_type
from neuron_tools.profile.timeline.scan import TrackKey, TrackRows
from neuron_tools.profile.timeline.segment import Segment, in_order

SEGMENT_SPANS = 1 << 17


@frozen
class _Piece:
    """Where one batch's rows of a track stand in the file, and the types of its columns."""

    offset: int
    spans: int
    first_ns: int
    kinds: tuple[str, ...]


class Spool:
    """Pieces of tracks in a temporary file. Close it, or use it in a `with` statement.

    Args:
        folder: Where the file is made; it has no name there.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=1 << 20)  # noqa: SIM115  # closed with the spool
        self._pieces: dict[TrackKey, list[_Piece]] = {}
        self._offset = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, rows: TrackRows) -> None:
        """Keep one batch's rows of a track.

        Raises:
            OSError: The disk is full.
        """
        first_ns = int(rows.start_ns[0])
        columns: list[npt.NDArray[Any]] = [rows.start_ns - first_ns, rows.duration_ns, rows.name, rows.row]
        columns += [] if rows.layer is None else [rows.layer]
        kinds = tuple(fitting_type(column) for column in columns)
        self._pieces.setdefault(rows.key, []).append(
            _Piece(self._offset, len(rows.start_ns), first_ns, kinds)
        )
        for column, kind in zip(columns, kinds, strict=True):
            self._offset += self._file.write(column.astype(kind).data)

    def tracks(self) -> list[TrackKey]:
        """Keys of the tracks, in order of appearance."""
        return list(self._pieces)

    def segments(self, track: TrackKey) -> Iterator[Segment]:
        """A track's spans in order, in segments of about a hundred thousand."""
        self._file.flush()
        pieces = sorted(self._pieces[track], key=lambda piece: piece.first_ns)
        held: list[Segment] = []
        count = 0
        for place, piece in enumerate(pieces):
            held.append(self._read(piece))
            count += piece.spans
            if count >= SEGMENT_SPANS and place + 1 < len(pieces):
                ready, rest = in_order(held).before(pieces[place + 1].first_ns)
                held, count = ([rest], len(rest)) if len(rest) else ([], 0)
                if len(ready):
                    yield ready
        if held:
            yield in_order(held)

    def _read(self, piece: _Piece) -> Segment:
        size = piece.spans * sum(np.dtype(kind).itemsize for kind in piece.kinds)
        held = os.pread(self._file.fileno(), size, piece.offset)
        columns: list[Ints] = []
        offset = 0
        for kind in piece.kinds:
            values = np.frombuffer(held, kind, piece.spans, offset)
            columns.append(values.astype(np.int64))
            offset += values.nbytes
        layer = columns[4].astype(np.int32) if len(columns) > 4 else None
        return Segment(
            columns[0] + piece.first_ns, columns[1], columns[2].astype(np.int32), columns[3], layer
        )
