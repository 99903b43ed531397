"""How much longer or shorter the spans of one name are in one profile than in another, track by track."""

from __future__ import annotations

from typing import Any

from neuron_explorer.timeline.track_places import columns_of, places_by_row, row_columns, sources_of
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.sources import SpanSource

MOST_NAMES = 20_000
"""Names of one table; those with the most time count."""

Means = dict[tuple[str, str], tuple[float, int]]
"""Mean duration in ns, and the number of spans, by track and name."""


def span_deltas(new: Profile, base: Profile) -> dict[str, Any]:
    """Mean durations of what both profiles have; tracks are aligned by ids, which stand for the hierarchy.

    Returns:
        `tracks`: by the track's id, a list of {"name", "new_ns", "base_ns", "new_count", "base_count"}.
    """
    tracks: dict[str, list[dict[str, Any]]] = {}
    for table in sorted({track.table for track in new.tracks() if not track.is_counter}):
        before = _means(base, table)
        for (track, name), (mean_ns, count) in _means(new, table).items():
            if (track, name) in before:
                base_ns, base_count = before[track, name]
                tracks.setdefault(track, []).append(
                    {"name": name, "new_ns": mean_ns, "base_ns": base_ns, "new_count": count,
                     "base_count": base_count}
                )  # fmt: skip
    return {"tracks": tracks}


def _means(profile: Profile, table: str) -> Means:
    if table not in profile.tables():
        return {}
    found: Means = {}
    for source in sources_of(table):
        found |= _means_of(profile, source)
    return found


def _means_of(profile: Profile, source: SpanSource) -> Means:
    table, places = source.table, places_by_row(profile, source)
    held = columns_of(profile, table)
    columns = row_columns(source, held)
    if columns is None or not places:
        return {}
    rows = profile.query(
        f"SELECT {columns.process} AS process, {columns.core} AS core, {columns.apart} AS apart,"
        f" {columns.name} AS name, avg({columns.end} - {columns.start}) AS mean_ns, count(*) AS count"
        f' FROM "{table}" WHERE {columns.start} IS NOT NULL'
        f" GROUP BY 1, 2, 3, 4 ORDER BY sum({columns.end} - {columns.start}) DESC LIMIT {MOST_NAMES}"
    )
    tracks = profile.tracks()
    found: Means = {}
    for row in rows.to_pylist():
        place = places.get((row["process"], row["core"], row["apart"]))
        if place is not None:
            found[tracks[place].id, row["name"]] = (float(row["mean_ns"]), int(row["count"]))
    return found
