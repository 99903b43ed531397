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
CACHE_USE = (
    ("kv_cache 2/64", "range", 140, 310), ("kv_cache 5/64", "range", 310, 715),
    ("kv_cache 3/64", "range", 715, 720),
)  # fmt: skip
"""The blocks of the KV cache that they hold."""


def busy(requests: int, at_once: int, tokens: int) -> tuple[tuple[str, str, int, int], ...]:
    """Ranges of a server that works on so many requests at once, which come faster than they are done.

    Args:
        requests: How many come, 10 µs after one another.
        at_once: How many share an iteration.
        tokens: How many the first has; others have up to 6 more.
    """
    rows: list[tuple[str, str, int, int]] = []
    arrived = {f"cmpl-{place:032x}-0": 10_000 * place for place in range(requests)}
    waiting, running, now = list(arrived), dict[str, int](), 0
    while waiting or running:
        while waiting and len(running) < at_once:
            taken = waiting.pop(0)
            now = max(now, arrived[taken])
            running[taken] = tokens + len(waiting) % 7
            rows.append((f"queue {taken}", "range", arrived[taken], now))
        rows.append(("mm", "dispatch", now + 10, now + 20))
        start, now = now, now + 900_000 + 1_237 * len(running)
        for place, request in enumerate(list(running)):
            rows.append((f"token {request}", "range", start, now + place))
            running[request] -= 1
            if not running[request]:
                del running[request]
                rows.append((f"request {request}", "range", arrived[request], now + place))
        now += at_once
    return tuple(rows)


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
