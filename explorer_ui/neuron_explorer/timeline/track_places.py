"""Which track the rows of a table belong to: the other way round from `Profile.row(track.table, row)`."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.sources import SPAN_SOURCES, SpanSource
from neuron_tools.profile.timeline.track import Track


@frozen
class RowColumns:
    """SQL expressions over a table's rows, null where the table lacks the columns.

    Attributes:
        process: Index of the process.
        core: Number of the core; -1 for what belongs to the host.
        apart: What tells the tracks of a core apart, as text; it ends the track's id.
    """

    table: str
    start: str
    end: str
    process: str
    core: str
    apart: str
    name: str


def row_columns(source: SpanSource, held: frozenset[str]) -> RowColumns | None:
    """Expressions for a source's rows; None where the table lacks their times."""
    if source.start not in held or not (source.end in held or source.duration in held):
        return None
    end = f'"{source.end}"' if source.end in held else f'"{source.start}" + coalesce("{source.duration}", 0)'
    core = f'coalesce(CAST("{source.core}" AS BIGINT), 0)' if source.core in held else "-1"
    texts = [f"nullif(CAST(\"{text}\" AS VARCHAR), '')" for text in source.texts if text in held]
    number = f'CAST(coalesce("{source.number}", 0) AS VARCHAR)' if source.number in held else ""
    parts = [f"coalesce({', '.join(texts)}, '')"] * bool(texts) + [number] * bool(number)
    names = [f"nullif(CAST(\"{name}\" AS VARCHAR), '')" for name in source.names if name in held]
    return RowColumns(
        source.table,
        f'"{source.start}"',
        f'greatest({end}, "{source.start}")',
        "CAST(coalesce(process_idx, 0) AS BIGINT)" if "process_idx" in held else "CAST(0 AS BIGINT)",
        core,
        " || '/' || ".join(parts) or "''",
        f"coalesce({', '.join(names)}, '')" if names else "''",
    )


def sources_of(table: str) -> list[SpanSource]:
    """Sources that take their spans from a table."""
    return [source for source in SPAN_SOURCES if source.table == table]


def source_of(track: Track) -> SpanSource | None:
    """The source of a track's spans; of tables with several, the one whose ids its own is like."""
    sources = sources_of(track.table)
    level = _parts(track.id)[0]
    fitting = [source for source in sources if (source.again or source.level) == level]
    return next(iter(fitting or sources), None)


def columns_of(profile: Profile, table: str) -> frozenset[str]:
    """Columns that a profile's table has."""
    return frozenset(profile.table(table).columns)


def places_by_row(profile: Profile, source: SpanSource) -> dict[tuple[int, int, str], int]:
    """Places of a source's tracks by process, core and what tells them apart, but for tracks of modules."""
    found = {}
    for place, track in enumerate(profile.tracks()):
        if track.table != source.table or track.is_counter or track.level == "module":
            continue
        if source_of(track) != source:
            continue
        core = -1 if track.core_idx is None else track.core_idx
        found[track.process_idx, core, track_apart(track.id)] = place
    return found


def track_apart(track_id: str) -> str:
    """The end of a track's id that tells it apart from others of its core and level."""
    return "/".join(_parts(track_id)[1:])


def _parts(track_id: str) -> list[str]:
    """The parts of a track's id behind process and core, the level first."""
    parts = track_id.split("/")
    return parts[2 if len(parts) > 1 and parts[1].startswith("core") else 1 :] or [""]
