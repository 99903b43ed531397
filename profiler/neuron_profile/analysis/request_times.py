"""When the requests of a serving loop arrived, were first worked on, and had each of their tokens.

A request is a range `request ID` (`torch.profiler.record_function`), open from its arrival to its end. Its
tokens are the ends of the ranges `token ID`; where there are none, of the outermost module calls inside it.
A range `queue ID` ends when it is first worked on; a range `abort ID` stands at the end of a request that
ends before its time. A range is written when it ends: a request that was still running when the capture
ended is told of by its `queue ID` and `token ID` alone.

Where one process prefills requests and another decodes them, each has ranges of them, and the second a range
`handover ID FIRST` until it has the keys and values: that is one request. FIRST is the first process's ID of
it, left out where that is the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_REQUESTS = """
WITH marks AS (
    SELECT split_part(name, ' ', 1) AS mark, coalesce(process_idx, 0) AS process,
        split_part(name, ' ', 2) AS id, thread_idx AS thread, start_ts AS start_ns, end_ts AS end_ns,
        source_file AS file, source_line AS line
    FROM HostSpan WHERE kind = 'range' AND regexp_matches(name, '^(request|queue|token) \\S+$')
), requests AS (FROM marks WHERE mark = 'request'
), unfinished AS (
    SELECT queue.* REPLACE (token.end_ns AS end_ns)
    FROM (FROM marks WHERE mark = 'queue') queue
    JOIN (SELECT process, id, max(end_ns) AS end_ns FROM marks WHERE mark = 'token' GROUP BY ALL) token
        ON token.process = queue.process AND token.id = queue.id AND queue.end_ns <= token.end_ns
    WHERE NOT EXISTS (
        FROM requests WHERE requests.process = queue.process AND requests.id = queue.id
            AND requests.end_ns >= queue.start_ns)
)
SELECT * FROM requests UNION ALL SELECT * FROM unfinished ORDER BY start_ns
"""
_ENDS = """
SELECT coalesce(process_idx, 0) AS process, regexp_extract(name, ?, 1) AS id, end_ts AS end_ns
FROM HostSpan WHERE kind = 'range' AND regexp_matches(name, ?) ORDER BY end_ts
"""
_HANDOVERS = """
SELECT coalesce(process_idx, 0) AS process, parts[2] AS id, coalesce(parts[3], parts[2]) AS first,
    end_ts AS end_ns
FROM (SELECT *, string_split(name, ' ') AS parts FROM HostSpan
    WHERE kind = 'range' AND regexp_matches(name, '^handover \\S+( \\S+)?$')) ORDER BY end_ts
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
class RequestTimes:
    """A request, with a token unless it was aborted. All times are in ns from the profile's start.

    Attributes:
        process: Of the capture: ProcessInfo.process_idx.
        request: Its ID.
        arrived_ns, ended_ns: Its range; it ends with the last token of one that was not finished.
        started_ns: When it was first worked on; None where no range `queue ID` tells.
        token_ns: The ends of its tokens, ascending.
        file, line: Where its range was opened; "" and 0 where that is not known.
        is_finished: Whether it ended before the capture did.
        is_aborted: Whether it ended before its time, as its client had gone, say.
        prefilled_ns: When another process, at which it arrived, had computed its prompt; None where it has
            been at one process alone.
    """

    process: int
    request: str
    arrived_ns: int
    started_ns: int | None
    ended_ns: int
    token_ns: tuple[int, ...]
    file: str = ""
    line: int = 0
    is_finished: bool = True
    prefilled_ns: int | None = None
    is_aborted: bool = False

    @property
    def begun_ns(self) -> int:
        """When it was first worked on, as far as that is known: else when it arrived, or left the queue."""
        if self.started_ns is not None:
            return self.started_ns
        return self.arrived_ns if self.token_ns else self.ended_ns

    @property
    def prefill_end_ns(self) -> int:
        """When its first token came, or it was aborted."""
        return self.token_ns[0] if self.token_ns else self.ended_ns

    def waits_at(self, time_ns: int) -> bool:
        """Whether it has arrived then and has no token yet."""
        return self.arrived_ns <= time_ns <= self.prefill_end_ns


def has_requests(profile: Profile) -> bool:
    """Whether the whole profile has ranges of requests."""
    return bool(_ranges(profile.whole))


def find_request_times(profile: Profile) -> tuple[RequestTimes, ...]:
    """The requests of a profile, or of a range of it, by arrival; empty where none has a token."""
    if not has_requests(profile):
        return ()
    marks = {kind: _ends(profile, kind) for kind in ("token", "queue", "abort")}
    all_of_them = (_times(profile, row, marks) for row in _ranges(profile))
    told = [request for request in all_of_them if request.token_ns or request.is_aborted]
    joined = _joined(told, profile.query(_HANDOVERS).to_pylist())
    if not any(request.token_ns for request in joined):
        return ()
    return tuple(sorted(joined, key=lambda request: request.arrived_ns))


def _joined(
    requests: Sequence[RequestTimes], handovers: Iterable[Mapping[str, Any]]
) -> Collection[RequestTimes]:
    """Requests, of which those that one process prefills and another decodes are one.

    Tokens are those of the second.
    """
    joined, named = dict(enumerate(requests)), defaultdict[str, list[int]](list)
    for place, request in joined.items():
        named[request.request].append(place)
    for handover in handovers:
        _join(joined, named, handover)
    return joined.values()


def _join(
    requests: dict[int, RequestTimes], named: Mapping[str, Sequence[int]], handover: Mapping[str, Any]
) -> None:
    """Make one of the two requests of a handover; `named` has the places of requests by their IDs."""
    process, end = handover["process"], handover["end_ns"]
    to = _last(requests, named[handover["id"]], lambda each: each.process == process and each.waits_at(end))
    before = _last(
        requests, named[handover["first"]], lambda each: each.process != process and each.begun_ns < end
    )
    if to is not None and before is not None:
        first = requests.pop(before)
        requests[to] = replace(
            requests[to],
            arrived_ns=first.arrived_ns,
            started_ns=first.started_ns,
            prefilled_ns=min(first.prefill_end_ns, end),
        )


def _last(
    requests: Mapping[int, RequestTimes], places: Iterable[int], fits: Callable[[RequestTimes], bool]
) -> int | None:
    """The place of the last request to arrive that fits, of those at some places."""
    found = (place for place in places if place in requests and fits(requests[place]))
    return max(found, key=lambda place: requests[place].arrived_ns, default=None)


def _ranges(profile: Profile) -> list[dict[str, Any]]:
    ranges: list[dict[str, Any]] = profile.kept("requests", lambda: profile.query(_REQUESTS).to_pylist())
    return ranges


def _ends(profile: Profile, kind: str) -> dict[tuple[int, str], list[int]]:
    """When the ranges `kind ID` end, in ns, by process and ID, in order."""
    ends: dict[tuple[int, str], list[int]] = {}
    for row in profile.query(_ENDS, [f"^{kind} (\\S+)$"] * 2).to_pylist():
        ends.setdefault((row["process"], row["id"]), []).append(row["end_ns"])
    return ends


def _times(
    profile: Profile, row: dict[str, Any], marks: Mapping[str, dict[tuple[int, str], list[int]]]
) -> RequestTimes:
    tokens, aborted = _of(row, marks["token"]), _of(row, marks["abort"])
    waited = [end for end in _of(row, marks["queue"]) if not aborted or end < aborted[0]]
    has_tokens = any(process == row["process"] for process, _ in marks["token"])
    return RequestTimes(
        process=row["process"],
        request=row["id"],
        arrived_ns=row["start_ns"],
        started_ns=next(iter(waited), None),
        ended_ns=row["end_ns"],
        token_ns=tuple(tokens if has_tokens else _calls(profile, row)),
        file=row["file"] or "",
        line=row["line"] or 0,
        is_finished=row["mark"] == "request",
        is_aborted=bool(aborted),
    )


def _of(row: dict[str, Any], ends: dict[tuple[int, str], list[int]]) -> list[int]:
    """Those of a request: an ID may come again after the request that had it has ended."""
    own = ends.get((row["process"], row["id"]), [])
    return [end for end in own if row["start_ns"] <= end <= row["end_ns"]]


def _calls(profile: Profile, request: dict[str, Any]) -> list[int]:
    """Ends of the outermost module calls inside a request."""
    bounds = [request[name] for name in ("process", "thread", "start_ns", "end_ns")]
    ends: list[int] = profile.query(_CALLS, bounds).to_pydict()["end_ns"]
    return ends
