"""The timeline of an open profile: finds the index that stands beside the tables, or builds it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.stored_catalog import parts_signature
from neuron_tools.profile.timeline.index import IndexMismatchError, TimelineIndex
from neuron_tools.profile.timeline.replicas import TrackPlaces, replicas_in, with_replicas
from neuron_tools.profile.timeline.search import Condition, at_lines, column_is, search_names, search_rows
from neuron_tools.profile.timeline.sources import DESCRIBING_TABLES, SPAN_SOURCES, TRACK_TABLES
from neuron_tools.profile.timeline.track import Track

Parts = Mapping[str, Sequence[Path]]
StacksThrough = Callable[[str, int, int], frozenset[str]]
INDEX_FOLDER = "timeline"
LINES = "lines"
_LINES_OF_FILE = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?", re.DOTALL)


class TimelineError(NeuronToolsError):
    """A track does not exist, or a range of time cannot be drawn."""


class Timeline:
    """Tracks of a profile and what they show in any range.

    Args:
        directory: The profile.
        parts: Its whole parts by table.
    """

    def __init__(self, directory: Path, parts: Parts) -> None:
        self._parts = shown_parts(parts)
        self._index, self._folder = open_index(directory, parts)
        replicas = replicas_in(self._parts.get("ProcessInfo", ()))
        self._tracks = with_replicas(self._index.tracks, replicas)
        self._stored = TrackPlaces(self._tracks, self._index.tracks) if replicas else None
        self._places = {track.id: place for place, track in enumerate(self.tracks)}

    @property
    def tracks(self) -> tuple[Track, ...]:
        """All tracks in drawing order."""
        return self._tracks

    def range_ns(self) -> tuple[int, int]:
        """Start of the first and end of the last span or sample; (0, 0) without any."""
        if not self.tracks:
            return 0, 0
        return min(track.start_ns for track in self.tracks), max(track.end_ns for track in self.tracks)

    def is_in_order(self, table: str) -> bool:
        """Whether the rows of each track of a table stand in order of start."""
        return table not in self._index.unordered

    def one(
        self, track: Track | str, start_ns: int | None, end_ns: int | None, pixels: int
    ) -> pa.RecordBatch:
        """The pixels of one track."""
        place = self._place(track)
        return self.many([self.tracks[place]], start_ns, end_ns, pixels).drop_columns(["track"])

    def many(
        self,
        tracks: Sequence[Track | str] | None,
        start_ns: int | None,
        end_ns: int | None,
        pixels: int,
        *,
        depths: int | None = None,
        relative: bool = False,
    ) -> pa.RecordBatch:
        """The pixels of several tracks, which are all of spans or all counters; None for all of spans.

        Raises:
            TimelineError: The range is empty, a track unknown, counters and spans are mixed, or nothing is
                drawn.
        """
        start, end = self._range(start_ns, end_ns)
        if pixels < 1:
            raise TimelineError(f"{pixels} pixels cannot be drawn: ask for at least one.")
        if tracks is None:
            places = [place for place, track in enumerate(self.tracks) if not track.is_counter]
        else:
            places = [self._place(track) for track in tracks]
        kinds = {self.tracks[place].is_counter for place in places}
        if len(kinds) > 1:
            raise TimelineError("Counters and tracks of spans have different columns: ask for them apart.")
        if depths is not None and depths < 0:
            raise TimelineError(f"{depths} depths cannot be drawn: ask for none or more.")
        drawn = places if self._stored is None else sorted({self._stored.stored(place) for place in places})
        if kinds == {True}:
            batch = self._index.counter_pixels(drawn, start, end, pixels)
        else:
            batch = self._index.pixels(drawn, start, end, pixels, depths=depths, relative=relative)
        return batch if self._stored is None else self._stored.shown(batch, places)

    def spans(
        self, track: Track | str, start_ns: int | None, end_ns: int | None, limit: int
    ) -> pa.RecordBatch:
        """The spans of a track that overlap a range."""
        start, end = self._range(start_ns, end_ns)
        place = self._place(track)
        stored = place if self._stored is None else self._stored.stored(place)
        return self._index.spans(stored, start, end, limit)

    def search(
        self,
        text: str,
        start_ns: int | None,
        end_ns: int | None,
        limit: int,
        stacks_through: StacksThrough = lambda _file, _first, _last: frozenset(),
    ) -> pa.Table:
        """Spans by name, by column, or by source lines; of replicas only what they have of their own.

        Args:
            stacks_through: Innermost frames of the stacks that the first to last line of a file are on.
        """
        start, end = self._range(start_ns, end_ns)
        condition = _condition(text, stacks_through)
        if condition is None:
            found = search_names(self._index, text, start, end, limit)
        else:
            found = search_rows(self._index, self._parts, condition, (start, end), limit)
        return found if self._stored is None else self._stored.found(found)

    def _range(self, start_ns: int | None, end_ns: int | None) -> tuple[int, int]:
        first, last = self.range_ns()
        start, end = first if start_ns is None else start_ns, last if end_ns is None else end_ns
        if end_ns is None:
            end = max(end, start + 1)
        if end <= start:
            raise TimelineError(f"The range from {start} to {end} ns is empty: end it after its start.")
        return start, end

    def _place(self, track: Track | str) -> int:
        name = track if isinstance(track, str) else track.id
        if name not in self._places:
            raise TimelineError(f"The profile has no track {name!r}: `tracks()` lists those it has.")
        return self._places[name]


def _condition(text: str, stacks_through: StacksThrough) -> Condition | None:
    """What a search text asks of the rows; None where it is a name."""
    column, equals, value = (part.strip() for part in text.partition("="))
    lines = _LINES_OF_FILE.fullmatch(value) if column == LINES else None
    if lines is not None:
        file, first, last = lines.groups()
        here = file, int(first), int(last or first)
        return at_lines(*here, stacks_through(*here))
    if equals and any(column in TABLES[source.table].by_name for source in SPAN_SOURCES):
        return column_is(column, value)
    return None


def open_index(
    directory: Path, parts: Parts
) -> tuple[TimelineIndex, tempfile.TemporaryDirectory[str] | None]:
    """The index of these parts: the stored one if it matches, else a new one.

    Where the profile's folder cannot be written, the new one stands in a temporary folder, which is returned
    too and lives as long as it is referred to.
    """
    parts = shown_parts(parts)
    signature = parts_signature(parts)
    folder = directory / INDEX_FOLDER
    try:
        return TimelineIndex(folder, signature), None
    except IndexMismatchError:
        pass
    try:
        _build(parts, folder, signature)
        return TimelineIndex(folder, signature), None
    except (OSError, IndexMismatchError):
        temporary = tempfile.TemporaryDirectory(prefix="neuron-tools-")
        _build(parts, Path(temporary.name) / INDEX_FOLDER, signature)
        return TimelineIndex(Path(temporary.name) / INDEX_FOLDER, signature), temporary


def _build(parts: Parts, folder: Path, signature: str) -> None:
    from neuron_tools.profile.timeline.builder import build_index  # compiled: opening does without

    build_index(parts, folder, signature)


def shown_parts(parts: Parts) -> Parts:
    """The parts of the tables that the timeline shows."""
    return {table: parts[table] for table in (*TRACK_TABLES, *DESCRIBING_TABLES) if table in parts}
