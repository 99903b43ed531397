"""What happens in a range of time: per track from the index, per name from the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_explorer.timeline.track_places import columns_of, row_columns, sources_of
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

NAMES = 12


def range_statistics(profile: Profile, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """Of each track with anything in the range: spans that begin in it, and how busy it is.

    Costs a few reads of the index for each track, however long the range is.

    Returns:
        `track` (place), `count`, `busy_share` (of the busiest depth, 0 to 1), `span_ns` (durations of all
        depths, cut to the range).
    """
    drawn = profile.timelines(None, start_ns, end_ns, 1)
    track = drawn.column("track").to_numpy()
    if not len(track):
        return []
    first = np.flatnonzero(np.diff(track, prepend=-1))
    share = drawn.column("busy_share").to_numpy().astype(np.float64)
    columns = (
        track[first],
        np.add.reduceat(drawn.column("count").to_numpy(), first),
        np.maximum.reduceat(share, first),
        np.add.reduceat(share, first) * (end_ns - start_ns),
    )
    return [
        {"track": int(place), "count": int(count), "busy_share": float(busy), "span_ns": float(length)}
        for place, count, busy, length in zip(*columns, strict=True)
    ]


def range_names(profile: Profile, track: Track, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """The names on a track that take most of a range: `name`, `count`, `span_ns`, `longest_ns`.

    Only what lies inside the range counts in `span_ns`. Empty for tracks of modules, whose names stand
    in no column.
    """
    source = next(iter(sources_of(track.table)), None)
    if source is None or track.level == "module":
        return []
    held = columns_of(profile, track.table)
    columns = row_columns(source, held)
    if columns is None:
        return []
    process = "coalesce(process_idx, 0)" if "process_idx" in held else "0"
    core = -1 if track.core_idx is None else track.core_idx
    prefix = 3 if track.core_idx is not None and "/core" in track.id else 2
    found = profile.query(
        f"SELECT {columns.name} AS name, count(*) AS count,"
        f" sum(least({columns.end}, $end) - greatest({columns.start}, $start)) AS span_ns,"
        f" max({columns.end} - {columns.start}) AS longest_ns"
        f' FROM "{track.table}" WHERE {columns.start} < $end AND {columns.end} > $start'
        f" AND {process} = $process AND {columns.core} = $core AND {columns.apart} = $apart"
        f" GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT {NAMES}",
        {
            "start": start_ns,
            "end": end_ns,
            "process": track.process_idx,
            "core": core if columns.core != "-1" else -1,
            "apart": "/".join(track.id.split("/")[prefix:]),
        },
    )
    return [
        {**row, "span_ns": float(row["span_ns"]), "longest_ns": float(row["longest_ns"])}
        for row in found.to_pylist()
    ]
