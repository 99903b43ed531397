"""Requests of a serving loop: how long each waited, until the first token, and from token to token.

A request is a range `request ID` (`torch.profiler.record_function`), open from its arrival to its end. Its
tokens are the ends of the ranges `token ID`; where there are none, of the outermost module calls inside it.
A range `queue ID` ends when it is first worked on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_REQUESTS = """
SELECT coalesce(process_idx, 0) AS process, regexp_extract(name, '^request (\\S+)$', 1) AS id,
    thread_idx AS thread, start_ts AS start_ns, end_ts AS end_ns
FROM HostSpan WHERE kind = 'range' AND regexp_matches(name, '^request \\S+$') ORDER BY start_ts
"""
_ENDS = """
SELECT coalesce(process_idx, 0) AS process, regexp_extract(name, ?, 1) AS id, end_ts AS end_ns
FROM HostSpan WHERE kind = 'range' AND regexp_matches(name, ?) ORDER BY end_ts
"""
_CALLS = """
WITH calls AS (
    SELECT start_ts, end_ts, max(end_ts) OVER (
        ORDER BY start_ts, end_ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM HostSpan
    WHERE kind = 'module' AND coalesce(process_idx, 0) = ? AND thread_idx = ? AND start_ts >= ?
        AND end_ts <= ?
)
SELECT end_ts AS end_ns FROM calls WHERE reached IS NULL OR reached <= start_ts ORDER BY end_ts
"""


@frozen
class Request:
    """A request with at least one token.

    Attributes:
        request: Its ID.
        arrived_ns: When it arrived, from the profile's start.
        tokens: How many came.
        queue_ns: From arrival until it was first worked on; None where no range `queue ID` tells.
        prefill_ns: From then to the first token; None likewise.
        first_token_ns: From arrival to the first token (TTFT).
        decode_ns: From the first token to the last.
        per_token_ns: Mean time from token to token (TPOT); None where there is one.
        tokens_per_s: Tokens a second from arrival to the last.
    """

    request: str
    arrived_ns: int
    tokens: int
    queue_ns: int | None
    prefill_ns: int | None
    first_token_ns: int
    decode_ns: int
    per_token_ns: float | None
    tokens_per_s: float


@frozen
class Serving:
    """All requests of a profile, by arrival."""

    requests: tuple[Request, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all of them."""
        return sum(request.tokens for request in self.requests)

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second from the first arrival to the last token."""
        arrived = min(request.arrived_ns for request in self.requests)
        done = max(each.arrived_ns + each.first_token_ns + each.decode_ns for each in self.requests)
        return _rate(self.tokens, done - arrived)

    def first_token(self, quantile: float) -> float:
        """A quantile (0-1) of the time to the first token, in ns."""
        return _quantile((request.first_token_ns for request in self.requests), quantile)

    def per_token(self, quantile: float) -> float:
        """A quantile of the time per token, in ns; 0 where no request has two."""
        return _quantile((request.per_token_ns for request in self.requests), quantile)

    def queue(self, quantile: float) -> float | None:
        """A quantile of the time in the queue, in ns; None where it is not known."""
        known = [request.queue_ns for request in self.requests if request.queue_ns is not None]
        return _quantile(known, quantile) if known else None


def _quantile(values: Iterable[float | None], quantile: float) -> float:
    known = [value for value in values if value is not None]
    return float(np.quantile(known, quantile)) if known else 0.0


def _rate(tokens: int, duration_ns: int) -> float:
    return tokens / duration_ns * 1e9 if duration_ns else 0.0


def measure_serving(profile: Profile) -> Serving | None:
    """The requests of a profile, or of a range of it.

    Args:
        profile: Its ranges `request ID`, `token ID` and `queue ID` are read.

    Returns:
        None where no request has a token.
    """
    whole = profile.whole
    ranges = whole.kept("requests", lambda: whole.query(_REQUESTS).to_pylist())
    if ranges and whole is not profile:
        ranges = profile.query(_REQUESTS).to_pylist()
    if not ranges:
        return None
    tokens, waits = _ends(profile, "token"), _ends(profile, "queue")
    requests: list[Request] = []
    for row in ranges:
        ends = _of(row, tokens) or _calls(profile, row)
        if ends:
            requests.append(_request(row, ends, _of(row, waits)))
    return Serving(tuple(requests)) if requests else None


def _ends(profile: Profile, kind: str) -> dict[tuple[int, str], list[int]]:
    """When the ranges `kind ID` end, in ns, by process and ID, in order."""
    ends: dict[tuple[int, str], list[int]] = {}
    for row in profile.query(_ENDS, [f"^{kind} (\\S+)$"] * 2).to_pylist():
        ends.setdefault((row["process"], row["id"]), []).append(row["end_ns"])
    return ends


def _of(row: dict[str, Any], ends: dict[tuple[int, str], list[int]]) -> list[int]:
    """Those of a request: an ID may come again after the request that had it has ended."""
    own = ends.get((row["process"], row["id"]), [])
    return [end for end in own if row["start_ns"] <= end <= row["end_ns"]]


def _request(row: dict[str, Any], ends: list[int], waits: list[int]) -> Request:
    arrived, first, last = row["start_ns"], ends[0], ends[-1]
    started = waits[0] if waits else None
    return Request(
        request=row["id"],
        arrived_ns=arrived,
        tokens=len(ends),
        queue_ns=None if started is None else started - arrived,
        prefill_ns=None if started is None else first - started,
        first_token_ns=first - arrived,
        decode_ns=last - first,
        per_token_ns=(last - first) / (len(ends) - 1) if len(ends) > 1 else None,
        tokens_per_s=_rate(len(ends), last - arrived),
    )


def _calls(profile: Profile, request: dict[str, Any]) -> list[int]:
    """Ends of the outermost module calls inside a request."""
    bounds = [request[name] for name in ("process", "thread", "start_ns", "end_ns")]
    ends: list[int] = profile.query(_CALLS, bounds).to_pydict()["end_ns"]
    return ends
