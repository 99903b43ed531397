"""What the engine must know of a profile before it draws anything: its tracks, and the range of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_explorer.timeline.charged_tiles import is_charged
from neuron_explorer.timeline.parameters import BUCKETS
from neuron_explorer.timeline.range_statistics import range_statistics
from neuron_explorer.timeline.use_tiles import has_use
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

EXACT_NS = 1 << 52
"""Times up to this fit a JavaScript number with room to spare."""


def origin_ns(profile: Profile) -> int:
    """What the engine counts times from: 0, or the start where times do not fit a JavaScript number."""
    start, end = profile.time_range_ns()
    return 0 if start > -EXACT_NS and end < EXACT_NS else start


def track_list(profile: Profile, profile_id: str, range_ns: tuple[int, int] | None = None) -> dict[str, Any]:
    """The answer to `tracks`.

    Args:
        range_ns: What is shown first: each track of spans then tells what of it lies there.
    """
    origin = origin_ns(profile)
    start, end = profile.time_range_ns()
    tracks = profile.tracks()
    extremes = _extremes(profile, tracks)
    hosts = _hosts(profile)
    used = range_ns and {row["track"]: row for row in range_statistics(profile, *range_ns)}
    return {
        "profile": profile_id,
        "name": profile.path.name,
        "complete": profile.complete,
        "origin_ns": str(origin),
        "start_ns": start - origin,
        "end_ns": end - origin,
        "tile_buckets": BUCKETS,
        "tracks": [
            _track(track, origin, extremes.get(place), hosts.get(track.process_idx)) | _in_range(place, used)
            for place, track in enumerate(tracks)
        ],
    }


def _in_range(place: int, used: dict[int, dict[str, Any]] | None) -> dict[str, Any]:
    """What of a track lies in the range that is shown first, where there is one; None for nothing."""
    if used is None:
        return {}
    found = used.get(place)
    return {"in_range": found and {name: found[name] for name in ("count", "busy_share")}}


def _hosts(profile: Profile) -> dict[int, str]:
    """Machines by process, where they are known."""
    rows = profile.query("SELECT process_idx, host FROM ProcessInfo WHERE host IS NOT NULL").to_pylist()
    return {int(row["process_idx"] or 0): str(row["host"]) for row in rows}


def _track(
    track: Track, origin: int, extremes: tuple[float, float] | None, host: str | None
) -> dict[str, Any]:
    least, greatest = extremes or (0.0, 0.0)
    return {
        "id": track.id,
        "level": track.level,
        "name": track.name,
        "headings": list(track.headings),
        "rank": track.rank,
        "core": track.core_idx,
        "host": host or "",
        "table": track.table,
        "spans": track.spans,
        "depths": track.depths,
        "start_ns": track.start_ns - origin,
        "end_ns": track.end_ns - origin,
        "unit": track.unit,
        "charged": is_charged(track),
        "use": has_use(track),
        "counter": track.is_counter,
        "least": least,
        "greatest": greatest,
    }


def _extremes(profile: Profile, tracks: tuple[Track, ...]) -> dict[int, tuple[float, float]]:
    """Least and greatest value of each counter."""
    counters = [track for track in tracks if track.is_counter]
    if not counters:
        return {}
    whole = profile.timelines(counters, pixels=1)
    columns = (whole.column(name).to_numpy(zero_copy_only=False) for name in ("track", "least", "greatest"))
    return {
        int(place): (float(least), float(greatest))
        for place, least, greatest in zip(*columns, strict=True)
        if np.isfinite(least) and np.isfinite(greatest)
    }
