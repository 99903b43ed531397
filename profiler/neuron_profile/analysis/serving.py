"""Requests of a serving loop: how long until the first token, and from token to token.

A request is a range `request ID` (`torch.profiler.record_function`), open from its arrival to its end. Its
tokens are the ends of the ranges `token ID`; where there are none, of the outermost module calls inside it.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_REQUESTS = """
SELECT coalesce(process_idx, 0) AS process, regexp_extract(name, '^request (\\S+)$', 1) AS id,
    thread_idx AS thread, start_ts AS start_ns, end_ts AS end_ns
FROM HostSpan WHERE kind = 'range' AND regexp_matches(name, '^request \\S+$') ORDER BY start_ts
"""
_TOKENS = """
SELECT coalesce(process_idx, 0) AS process, regexp_extract(name, '^token (\\S+)$', 1) AS id, end_ts AS end_ns
FROM HostSpan WHERE kind = 'range' AND regexp_matches(name, '^token \\S+$') ORDER BY end_ts
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
class Serving:
    """All requests of a profile.

    Attributes:
        requests: Requests with at least one token.
        tokens: Tokens of all of them.
        first_token_ns: From arrival to first token, of each request.
        per_token_ns: Mean time from token to token, of each request with several.
    """

    requests: int
    tokens: int
    first_token_ns: tuple[int, ...]
    per_token_ns: tuple[float, ...]

    def first_token(self, quantile: float) -> float:
        """A quantile (0-1) of the time to the first token, in ns."""
        return float(np.quantile(self.first_token_ns, quantile))

    def per_token(self, quantile: float) -> float:
        """A quantile of the time per token, in ns; 0 where no request has two."""
        return float(np.quantile(self.per_token_ns, quantile)) if self.per_token_ns else 0.0


def measure_serving(profile: Profile) -> Serving | None:
    """The requests of a profile; None where it has none."""
    whole = profile.whole
    requests = whole.kept("requests", lambda: whole.query(_REQUESTS).to_pylist())
    if requests and whole is not profile:
        requests = profile.query(_REQUESTS).to_pylist()
    if not requests:
        return None
    tokens: dict[tuple[int, str], list[int]] = {}
    for row in profile.query(_TOKENS).to_pylist():
        tokens.setdefault((row["process"], row["id"]), []).append(row["end_ns"])
    first: list[int] = []
    each: list[float] = []
    total = 0
    for request in requests:
        ends = tokens.get((request["process"], request["id"])) or _calls(profile, request)
        if not ends:
            continue
        total += len(ends)
        first.append(ends[0] - request["start_ns"])
        if len(ends) > 1:
            each.append((ends[-1] - ends[0]) / (len(ends) - 1))
    return Serving(len(first), total, tuple(first), tuple(each)) if first else None


def _calls(profile: Profile, request: dict[str, int]) -> list[int]:
    """Ends of the outermost module calls inside a request."""
    bounds = [request[name] for name in ("process", "thread", "start_ns", "end_ns")]
    ends: list[int] = profile.query(_CALLS, bounds).to_pydict()["end_ns"]
    return ends
