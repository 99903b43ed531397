"""What happens in a range of time: per track from the index, per name from the table."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from neuron_explorer.timeline.track_places import columns_of, row_columns, source_of, track_apart
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

NAMES = 12
CHARGED_LEVELS = ("framework", "hlo", "module")
BETWEEN = "(between operations)"


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


def range_names(profile: Profile, track: Track, start_ns: int, end_ns: int) -> dict[str, Any]:
    """The names on a track that take most of a range: `names`, each `name`, `count`, `time_ns`, `longest_ns`.

    Operations overlap, and their spans enclose idle time: on tracks of framework operations, HLO operations
    and
    modules `time_ns` is the device time that a name is charged with in the range. On others it is that of
    the spans
    themselves, cut to the range. `is_charged` tells which.
    """
    found = _span_names(profile, track, start_ns, end_ns)
    if track.level not in CHARGED_LEVELS or not any(row["time_ns"] for row in found):
        return {"names": found[:NAMES], "is_charged": False}
    charged = _charged(profile.slice(start_ns, end_ns), track)
    known = {row["name"]: row for row in found}
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "count": known[name]["count"] if name in known else None,
            "time_ns": time_ns,
            "longest_ns": known[name]["longest_ns"] if name in known else None,
        }
        for name, time_ns in charged.items()
    ]
    rows.sort(key=lambda row: (-float(row["time_ns"]), row["name"]))
    return {"names": rows[:NAMES], "is_charged": True}


def _charged(part: Profile, track: Track) -> dict[str, float]:
    """Charged time by name on a track of operations or modules."""
    charges = charge_device_time(part, track.process_idx, track.core_idx, hlo="hlo_name")
    if track.level == "hlo":
        return {name or BETWEEN: time_ns for name, time_ns in charges.hlo.items()}
    times: defaultdict[str, float] = defaultdict(float)
    for charge in charges.charges:
        times[charge.origin.operation if track.level == "framework" else charge.origin.module] += (
            charge.device_ns
        )
    if charges.unattributed_ns:
        times[BETWEEN] += charges.unattributed_ns
    return {name: time_ns for name, time_ns in times.items() if time_ns}


def _span_names(profile: Profile, track: Track, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """All names on a track with their spans, by falling time; of a track of modules the paths."""
    source = source_of(track)
    if source is None:
        return []
    held = columns_of(profile, track.table)
    columns = row_columns(source, held)
    if columns is None:
        return []
    name = "coalesce(layer, '')" if track.level == "module" else columns.name
    core = -1 if track.core_idx is None else track.core_idx
    apart = "" if track.level == "module" else track_apart(track.id)
    most = "" if track.level in CHARGED_LEVELS else f" LIMIT {NAMES}"
    found = profile.query(
        f"SELECT {name} AS name, count(*) AS count,"
        f" sum(least({columns.end}, $end) - greatest({columns.start}, $start)) AS time_ns,"
        f" max({columns.end} - {columns.start}) AS longest_ns"
        f' FROM "{track.table}" WHERE {columns.start} < $end AND {columns.end} > $start'
        f" AND {columns.process} = $process AND {columns.core} = $core AND {columns.apart} = $apart"
        f" GROUP BY 1 ORDER BY 3 DESC, 1{most}",
        {
            "start": start_ns,
            "end": end_ns,
            "process": track.process_idx,
            "core": core if columns.core != "-1" else -1,
            "apart": apart,
        },
    )
    return [
        {**row, "time_ns": float(row["time_ns"]), "longest_ns": float(row["longest_ns"])}
        for row in found.to_pylist()
    ]
