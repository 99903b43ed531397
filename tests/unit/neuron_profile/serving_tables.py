"""Tables of a small serving loop with known times."""

from __future__ import annotations

from typing import Any

SERVER = "/project/serve.py"
BATCHED = (
    ("request a", "range", 100, 710), ("queue a", "range", 100, 150),
    ("mm", "dispatch", 160, 170), ("token a", "range", 290, 300),
    ("request b", "range", 180, 720), ("queue b", "range", 180, 310),
    ("mm", "dispatch", 320, 330), ("token a", "range", 490, 500), ("token b", "range", 500, 505),
    ("mm", "dispatch", 520, 530), ("token a", "range", 690, 700), ("token b", "range", 700, 703),
    ("token b", "range", 703, 706),
)  # fmt: skip
"""The prefill of the second request is a step of the first one; its last draft is accepted."""


def host_spans(*rows: tuple[Any, ...]) -> dict[str, dict[str, list[Any]]]:
    """(name, kind, start, end) each, and a process where it is not the first."""
    names, kinds, starts, ends = (list(column) for column in zip(*(row[:4] for row in rows)))
    return {
        "HostSpan": {
            "name": names, "kind": kinds, "start_ts": starts, "end_ts": ends,
            "duration_ns": [end - start for start, end in zip(starts, ends)],
            "process_idx": [row[4] if len(row) > 4 else 0 for row in rows], "thread_idx": [0] * len(rows),
            "source_file": [SERVER] * len(rows), "source_line": list(range(1, len(rows) + 1)),
        }
    }  # fmt: skip
