"""Requests of a serving loop: how long each waited, until the first token, and from token to token."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from neuron_profile.analysis.cache_use import WINDOWS, CacheUse, find_held_blocks
from neuron_profile.analysis.request_times import RequestTimes, find_request_times
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile


@frozen
class Request:
    """A request, with a token unless it was aborted.

    Attributes:
        request: Its ID.
        arrived_ns: When it arrived, from the profile's start.
        tokens: How many came.
        queue_ns: From arrival until it was first worked on; None where no range `queue ID` tells.
        prefill_ns: From then to the first token, or until another process had computed its prompt; None
            likewise.
        handover_ns: From the prefill at another process to the first token here; None where there was one
            process.
        first_token_ns: From arrival to the first token (TTFT); None where there is no token.
        decode_ns: From the first token to the last; None likewise.
        per_token_ns: Mean time from token to token (TPOT); None where there are not two.
        tokens_per_s: Tokens a second from arrival to the last.
        is_aborted: Whether it ended before its time, as its client had gone, say.
    """

    request: str
    arrived_ns: int
    tokens: int
    queue_ns: int | None
    prefill_ns: int | None
    handover_ns: int | None
    first_token_ns: int | None
    decode_ns: int | None
    per_token_ns: float | None
    tokens_per_s: float
    is_aborted: bool = False

    @classmethod
    def of(cls, times: RequestTimes) -> Request:
        """The measures of a request."""
        arrived, started, ends = times.arrived_ns, times.started_ns, times.token_ns
        first, last = (ends[0], ends[-1]) if ends else (None, None)
        prefilled = first if times.prefilled_ns is None else times.prefilled_ns
        return cls(
            request=times.request,
            arrived_ns=arrived,
            tokens=len(ends),
            queue_ns=_between(arrived, started),
            prefill_ns=_between(started, prefilled),
            handover_ns=_between(times.prefilled_ns, first),
            first_token_ns=_between(arrived, first),
            decode_ns=_between(first, last),
            per_token_ns=(ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else None,
            tokens_per_s=_rate(len(ends), ends[-1] - arrived) if ends else 0.0,
            is_aborted=times.is_aborted,
        )


@frozen
class Serving:
    """All requests of a profile, by arrival, and the KV cache that they share.

    Attributes:
        requests: By arrival.
        kv_cache: In windows of equal length, of one process after another; empty where it is not recorded.
    """

    requests: tuple[Request, ...]
    kv_cache: tuple[CacheUse, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of all of them."""
        return sum(request.tokens for request in self.requests)

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second from the first arrival to the last token."""
        arrived = min(request.arrived_ns for request in self.requests)
        done = max(
            each.arrived_ns + (each.first_token_ns or 0) + (each.decode_ns or 0) for each in self.requests
        )
        return _rate(self.tokens, done - arrived)

    @property
    def aborted(self) -> int:
        """How many of them were aborted."""
        return sum(request.is_aborted for request in self.requests)

    def first_token(self, quantile: float) -> float | None:
        """A quantile (0-1) of the time to the first token, in ns."""
        return _quantile((request.first_token_ns for request in self.requests), quantile)

    def per_token(self, quantile: float) -> float | None:
        """A quantile of the time per token, in ns; None where no request has two."""
        return _quantile((request.per_token_ns for request in self.requests), quantile)

    def queue(self, quantile: float) -> float | None:
        """A quantile of the time in the queue, in ns; None where it is not known."""
        return _quantile((request.queue_ns for request in self.requests), quantile)


def _between(start_ns: int | None, end_ns: int | None) -> int | None:
    return None if start_ns is None or end_ns is None else end_ns - start_ns


def _quantile(values: Iterable[float | None], quantile: float) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.quantile(known, quantile)) if known else None


def _rate(tokens: int, duration_ns: int) -> float:
    return tokens / duration_ns * 1e9 if duration_ns else 0.0


def measure_serving(profile: Profile) -> Serving | None:
    """The requests of a profile, or of a range of it.

    Args:
        profile: Its ranges `request ID`, `token ID` and `queue ID` are read.

    Returns:
        None where no request has a token.
    """
    times = find_request_times(profile)
    if not times:
        return None
    held = find_held_blocks(profile)
    uses = tuple(use for process in held for use in process.in_windows(WINDOWS))
    return Serving(tuple(Request.of(request) for request in times), uses)
