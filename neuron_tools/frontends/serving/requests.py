"""Ranges of requests in the profile: `request ID`, `queue ID` until a step takes it, `token ID`.

A range `abort ID` stands at the end of one that ends before its time.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.profiler import record_function


class RequestRanges:
    """The open ranges of a server's requests."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, record_function]] = {}

    def arrive(self, request_id: str) -> None:
        """A request has come and waits."""
        for kind in ("request", "queue"):
            self._begin(kind, request_id)

    def take(self, request_ids: Iterable[str]) -> None:
        """A step works on these: they wait no longer, and their next token begins."""
        for request_id in request_ids:
            self._end("queue", request_id)
            self._begin("token", request_id)

    def give(self, request_id: str, tokens: int) -> None:
        """A step has made tokens of a request; where there are several, they end together."""
        for _ in range(tokens):
            self._begin("token", request_id)
            self._end("token", request_id)

    def abort(self, request_id: str) -> None:
        """A request ends before its time: its client has gone, say."""
        self._begin("abort", request_id)
        self._end("abort", request_id)
        self.finish(request_id)

    def finish(self, request_id: str) -> None:
        """A request has ended; a token that it was stopped at is none."""
        for kind in ("queue", "request"):
            self._end(kind, request_id)
        self._open.pop(request_id, None)

    def _begin(self, kind: str, request_id: str) -> None:
        ranges = self._open.setdefault(request_id, {})
        if kind not in ranges:
            ranges[kind] = record_function(f"{kind} {request_id}")
            ranges[kind].__enter__()

    def _end(self, kind: str, request_id: str) -> None:
        opened = self._open.get(request_id, {}).pop(kind, None)
        if opened is not None:
            opened.__exit__(None, None, None)
