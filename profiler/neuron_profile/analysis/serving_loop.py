"""A serving loop over time: its iterations and who shares each, how many run and wait, tokens a second."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from neuron_profile.analysis.cache_use import HeldBlocks, find_held_blocks
from neuron_profile.analysis.request_times import RequestTimes, find_request_times
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

# Tokens between which the host gave the device nothing to do are of one iteration.
_WORK = """
WITH moments AS (
    SELECT unnest(?::BIGINT[]) AS process, unnest(?::BIGINT[]) AS end_ns, NULL AS begun_ns
    UNION ALL SELECT coalesce(process_idx, 0), start_ts, start_ts FROM HostSpan
    WHERE kind IN ('dispatch', 'module')
), reached AS (
    SELECT process, end_ns, begun_ns IS NULL AS is_end,
        max(begun_ns) OVER (PARTITION BY process ORDER BY end_ns) AS begun_ns
    FROM moments
)
SELECT process, end_ns, coalesce(begun_ns, -1) AS begun_ns FROM reached WHERE is_end
"""


@frozen
class Iteration:
    """One run of the model for all requests that are decoded together.

    Attributes:
        number: Its place by end, counted from 1.
        start_ns: The end of the iteration before, or when the first of its requests could be worked on.
        end_ns: When the last of its tokens came.
        requests: Places of its requests among those of the loop; each once.
        tokens: How many it made: more than requests where drafts were accepted.
    """

    number: int
    start_ns: int
    end_ns: int
    requests: tuple[int, ...]
    tokens: int


@frozen
class ServingLoop:
    """A serving loop, by request and by iteration.

    Attributes:
        requests: By arrival.
        iterations: By end.
        held_blocks: Of the KV cache, by process; empty where they are not recorded.
    """

    requests: tuple[RequestTimes, ...]
    iterations: tuple[Iteration, ...]
    held_blocks: tuple[HeldBlocks, ...] = ()

    @property
    def range_ns(self) -> tuple[int, int]:
        """From the first arrival to the last token."""
        start = min(request.arrived_ns for request in self.requests)
        return start, max(request.token_ns[-1] for request in self.requests if request.token_ns)

    def tokens_per_s(self, windows: int) -> NDArray[np.float64]:
        """Tokens a second in each of so many windows of equal length, float64 [windows].

        The tokens of an iteration are made all the time that it takes: windows may be shorter.
        """
        start, end = self.range_ns
        edges = np.linspace(start, max(end, start + 1), windows + 1)
        tokens, begins, ends = np.array(
            [(iteration.tokens, iteration.start_ns, iteration.end_ns) for iteration in self.iterations]
        ).T
        begins = np.minimum(begins, ends - 1)
        made = [tokens @ np.clip((edge - begins) / (ends - begins), 0, 1) for edge in edges]
        return np.diff(made) / np.diff(edges) * 1e9

    def running(self, windows: int) -> NDArray[np.int64]:
        """The most requests at once that are worked on, in each window, int64 [windows]."""
        return self._most(windows, [(each.begun_ns, each.ended_ns) for each in self.requests])

    def waiting(self, windows: int) -> NDArray[np.int64]:
        """The most requests at once in the queue, in each window, int64 [windows]."""
        return self._most(windows, [(each.arrived_ns, each.begun_ns) for each in self.requests])

    def _most(self, windows: int, spans: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
        low, high = self.range_ns
        edges = np.linspace(low, max(high, low + 1), windows + 1)
        starts, ends = (np.sort(np.array(times)) for times in zip(*spans))
        moments = np.concatenate([starts, edges[:-1]])
        open_at = np.searchsorted(starts, moments, "right") - np.searchsorted(ends, moments, "right")
        places = np.clip(np.searchsorted(edges, moments, "right") - 1, 0, windows - 1)
        most = np.zeros(windows, np.int64)
        np.maximum.at(most, places, open_at)
        return most


def find_serving_loop(profile: Profile) -> ServingLoop | None:
    """The loop of a profile; None where no request has a token."""
    requests = find_request_times(profile)
    if not requests:
        return None
    return ServingLoop(requests, tuple(_iterations(profile, requests)), find_held_blocks(profile))


def _iterations(profile: Profile, requests: Sequence[RequestTimes]) -> Iterator[Iteration]:
    """The iterations of all processes, by end."""
    work = _work_before(profile, requests)
    tokens = sorted(
        (request.process, end, place) for place, request in enumerate(requests) for end in request.token_ns
    )
    found = []
    for process, own in groupby(tokens, key=lambda token: token[0]):
        reached = 0
        for _, iteration in groupby(own, key=lambda token: work[token[0], token[1]]):
            made = [(end, place) for _, end, place in iteration]
            start = max(reached, min(_ready(requests[place], end) for end, place in made))
            reached = made[-1][0]
            found.append((reached, process, start, made))
    for number, (end, _, start, made) in enumerate(sorted(found), 1):
        yield Iteration(number, start, end, tuple(sorted({place for _, place in made})), len(made))


def _ready(request: RequestTimes, end_ns: int) -> int:
    """When the token of a request that ends then could be worked on."""
    before = bisect_left(request.token_ns, end_ns)
    return request.token_ns[before - 1] if before else request.begun_ns


def _work_before(profile: Profile, requests: Sequence[RequestTimes]) -> dict[tuple[int, int], int]:
    """Of each process and end of a token, when the work before it began."""
    ends = sorted({(request.process, end) for request in requests for end in request.token_ns})
    rows = profile.query(_WORK, [list(column) for column in zip(*ends)]).to_pydict()
    return dict(zip(zip(rows["process"], rows["end_ns"]), rows["begun_ns"]))
