"""Imports of traces made in a test, and their rows."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import Any

from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import open_profile


def written(folder: Any, name: str, content: Any) -> Any:
    """A file with the content: bytes as they are, anything else as JSON."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


@contextmanager
def imported(folder: Any, *contents: Any) -> Any:
    """The profile made of some traces, open."""
    paths = [written(folder, f"trace{number}", content) for number, content in enumerate(contents)]
    import_traces(paths, folder / "out.nprof", force=True)
    with open_profile(folder / "out.nprof") as profile:
        yield profile


def rows(profile: Any, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return [tuple(row.values()) for row in profile.query(query).to_pylist()]


def spans(profile: Any, condition: str = "TRUE") -> list[tuple[Any, ...]]:
    """(track, name, start, end) of spans in order of time."""
    return rows(
        profile,
        "SELECT t.name AS track, s.name, s.start_ts, s.end_ts FROM TraceSpan s"
        f" JOIN TraceTrack t USING (process_idx, track_idx) WHERE {condition}"
        " ORDER BY start_ts, end_ts DESC, s.id",
    )
