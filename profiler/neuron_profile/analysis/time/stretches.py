"""Cuts a profile into stretches of time that each have few enough spans to be held in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from neuron_tools.profile.reader import Profile

WINDOWS = 64
"""Windows for each stretch in which spans are counted."""


def cut_times(profile: Profile, starts: str, parameters: Sequence[Any], most_rows: int) -> list[int]:
    """Times in ns, ascending, that divide spans into stretches with about `most_rows` of them at most.

    Spans are counted in equal windows of time, of which a stretch has as many as it can: however unevenly
    they lie, it holds no more than the rows of one window too many.

    Args:
        starts: A query for the column `start_ts` of the spans, with these parameters.
    """
    extent = f"SELECT count(*) AS n, min(start_ts) AS first, max(start_ts) AS last FROM ({starts})"
    row = profile.query(extent, parameters).to_pylist()[0]
    if row["n"] <= most_rows:
        return []
    windows = WINDOWS * -(-row["n"] // most_rows)
    window_ns = max(1, -(-(row["last"] + 1 - row["first"]) // windows))
    counted = profile.query(
        f"SELECT (start_ts - ?) // ? AS place, count(*) AS n FROM ({starts}) GROUP BY place ORDER BY place",
        [row["first"], window_ns, *parameters],
    )
    return [row["first"] + place * window_ns for place in _full_before(counted, most_rows)]


def _full_before(counted: pa.Table, most_rows: int) -> Iterator[int]:
    """The windows before which a stretch is full."""
    rows = 0
    for place, n in zip(counted["place"].to_pylist(), counted["n"].to_pylist()):
        if rows and rows + n > most_rows:
            yield place
            rows = 0
        rows += n
