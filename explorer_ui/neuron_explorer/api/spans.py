"""The spans of the timeline that belong to lines of a source file."""

from __future__ import annotations

from typing import Any

from neuron_tools.profile.reader import Profile

SPAN_COLUMNS = ("track", "depth", "start_ns", "duration_ns", "name", "row")


def spans_of_lines(profile: Profile, file: str, first: int, last: int, limit: int) -> dict[str, Any]:
    """Spans whose own line is one of `first` to `last`, by start.

    Returns:
        `spans`: objects with `track` (the track's id), `start_ns`, `duration_ns`, `name`, `table` and `row`;
        `truncated`: whether there are more than `limit`.
    """
    found = profile.search(f"lines={file}:{first}-{last}", limit=limit + 1)
    tracks = profile.tracks()
    rows = found.select(SPAN_COLUMNS).slice(0, limit).to_pylist()
    for row in rows:
        track = tracks[row["track"]]
        row["track"], row["table"] = track.id, track.table
    return {"spans": rows, "truncated": found.num_rows > limit}
