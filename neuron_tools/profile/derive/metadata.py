"""Brings the Metadata rows into agreement with what was recorded."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from neuron_tools.profile.store.recorded import RecordedTables

_SECOND_NS = 1_000_000_000


def completed_metadata(recorded: RecordedTables, start_ns: int, end_ns: int) -> pa.Table | None:
    """The Metadata rows with the range of the recorded spans; None if the profile has no Metadata.

    A row written when the capture began cannot know its end. Rows that already reach as far stay.
    """
    rows = recorded.arrow("SELECT * FROM Metadata").to_pylist()
    if not rows:
        return None
    return pa.Table.from_pylist([_completed(row, start_ns, end_ns) for row in rows])


def _completed(row: dict[str, Any], start_ns: int, end_ns: int) -> dict[str, Any]:
    if row["last_hw_timestamp"] >= end_ns:
        return row
    return {
        **row,
        "first_hw_timestamp": start_ns,
        "last_hw_timestamp": end_ns,
        "first_ts": utc_text(start_ns),
        "last_ts": utc_text(end_ns),
    }


def utc_text(time_ns: int) -> str:
    """A time since 1970 as published profiles spell it: ISO 8601 with nanoseconds, UTC."""
    seconds, rest = divmod(time_ns, _SECOND_NS)
    moment = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{rest:09d}Z"
