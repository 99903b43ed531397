"""Collectives by rank and by source line: how long they moved data, how long ranks waited, who came last."""

from __future__ import annotations

from neuron_explorer import results
from neuron_explorer.analyses import analysis
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

COLLECTIVE_WAITS = "collective-waits"
_SUMS = """
count(*) AS calls, CAST(sum(duration_ns) AS BIGINT) AS moving_ns,
CAST(sum(greatest(0, coalesce(cc_trigger_start_delay, 0))) AS BIGINT) AS waiting_ns
"""
_RANKS = f"""
SELECT coalesce(info.rank, cc.process_idx, 0) AS rank, coalesce(any_value(info.host), '') AS host, {_SUMS},
    count(*) FILTER (cc.last_rank = info.rank) AS late
FROM CcOp cc LEFT JOIN ProcessInfo info ON info.process_idx = cc.process_idx
GROUP BY 1 ORDER BY 1
"""
_LINES = f"""
SELECT coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line, operation, {_SUMS}
FROM CcOp GROUP BY ALL ORDER BY waiting_ns + moving_ns DESC, file, line, operation
"""


@frozen
class RankWait:
    """The collectives of one rank.

    Attributes:
        host: Name of its machine; "" = not known.
        moving_ns: Sum of the collectives' durations.
        waiting_ns: From when it was ready to when the collective began: for the last rank, or for the stream.
        late: Collectives for which it was ready last.
    """

    rank: int
    host: str
    calls: int
    moving_ns: int
    waiting_ns: int
    late: int


@frozen
class LineWait:
    """The collectives of one kind that a source line issues, over all ranks; "" and 0 where none is known."""

    file: str
    line: int
    operation: str
    calls: int
    moving_ns: int
    waiting_ns: int


@frozen
class CollectiveWaits:
    """Both sums."""

    ranks: tuple[RankWait, ...]
    lines: tuple[LineWait, ...]


@analysis(COLLECTIVE_WAITS, "Summing up what ranks wait for each other")
def collective_waits(profile: Profile) -> CollectiveWaits:
    """Ranks that took part in a collective by number, lines by the time that they cost."""
    return CollectiveWaits(
        tuple(RankWait(**row) for row in results.rows(profile, _RANKS)),
        tuple(LineWait(**row) for row in results.rows(profile, _LINES)),
    )
