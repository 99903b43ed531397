"""Ranks and where they meet: who is late for a collective, and what the job would take if nobody were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.spans import length_ns, union
from neuron_tools.arrays import Ints
from neuron_tools.profile.reader import Profile

ABSENT = -1
MESSAGES = frozenset({"Send", "Receive"})
"""Operations between two ranks, of which one waits for the other by what they are."""

_MEETINGS = """
SELECT c.group_name || ' ' || coalesce(c.replica_group, '') AS meeting_group, c.op_id AS number,
    coalesce(c.process_idx, 0) AS process, coalesce(p.rank, c.process_idx, 0) AS rank,
    c.operation AS operation, c.trigger_start_ts AS ready_ns, c.start_ts AS start_ns, c.end_ts AS end_ns
FROM CcOp c LEFT JOIN ProcessInfo p USING (process_idx)
WHERE c.group_name IS NOT NULL AND p.replica_of_rank IS NULL ORDER BY c.start_ts, number, process
"""


@dataclass(frozen=True)
class RankMeetings:
    """All collectives that several ranks of a profile took part in, in order of their start.

    Attributes:
        processes, ranks: Process and rank of each column.
        ready_ns: When each rank was ready, int64, shape (meetings, ranks); ABSENT where it takes no part.
        start_ns, end_ns: When each moved, shape (meetings,).
        group: Number of each one's group, shape (meetings,).
        operations: What each is: "AllReduce", "SendRecv".
    """

    processes: tuple[int, ...]
    ranks: tuple[int, ...]
    ready_ns: Ints
    start_ns: Ints
    end_ns: Ints
    group: Ints
    operations: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.start_ns)

    def since(self, start_ns: int) -> RankMeetings:
        """Those that moved from a time on."""
        kept = self.start_ns >= start_ns
        return RankMeetings(
            self.processes, self.ranks, self.ready_ns[kept], self.start_ns[kept], self.end_ns[kept],
            self.group[kept], tuple(np.array(self.operations)[kept].tolist()),
        )  # fmt: skip

    @property
    def have_messages(self) -> bool:
        """Whether ranks hand each other messages, as the stages of a pipeline do."""
        return not MESSAGES.isdisjoint(self.operations)

    def lateness_ns(self) -> Ints:
        """How long the others waited for each rank: from their median until it came, where it came last.

        Time in which they waited for several of its collectives at once counts once.
        """
        last = np.argmax(self.ready_ns, axis=1)
        others = np.where(self.ready_ns == ABSENT, np.nan, self.ready_ns.astype(np.float64))
        others[np.arange(len(self)), last] = np.nan
        came_ns = self.ready_ns.max(axis=1)
        since_ns = came_ns - (came_ns - np.nanmedian(others, axis=1)).astype(np.int64)
        waits = (union(since_ns[last == rank], came_ns[last == rank]) for rank in range(len(self.ranks)))
        return np.array([length_ns(wait) for wait in waits], np.int64)

    def gain_without(self, late: int) -> int:
        """Nanoseconds by which the job would end earlier if a rank were as quick between meetings as others.

        Every rank is played again from meeting to meeting: its own work keeps its length, only that of the
        late one becomes the others' median, and each meeting begins when its last rank has come.

        Args:
            late: Column of the rank.
        """
        work, after_end = self._work()
        present = self.ready_ns != ABSENT
        others = np.where(present, work, np.iinfo(np.int64).max)
        others[:, late] = np.iinfo(np.int64).max
        rows = np.sort(others, axis=1)
        counts = np.maximum(present.sum(axis=1) - present[:, late], 1)
        typical = rows[np.arange(len(self)), (counts - 1) // 2]
        changed = work.copy()
        changed[:, late] = np.where(present[:, late], np.minimum(work[:, late], typical), 0)
        return int(self._last_end(work, after_end) - self._last_end(changed, after_end))

    def work_ns(self) -> Ints:
        """(meetings, ranks) each rank's own time before each meeting, since the one before of its own."""
        return self._work()[0]

    def evened_work_ns(self, chosen: npt.NDArray[np.bool_] | None = None) -> Ints:
        """(meetings, ranks) the work before each meeting, spread evenly over the ranks that take part.

        Args:
            chosen: (meetings,) those that this is about; all, if None. The others stay as they are.
        """
        work, present = self.work_ns(), self.ready_ns != ABSENT
        mean = np.where(present, work, 0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
        wanted = present if chosen is None else present & chosen[:, None]
        evened: Ints = np.where(wanted, np.rint(mean)[:, None].astype(np.int64), work)
        return evened

    def gain_with(self, work_ns: Ints) -> int:
        """Nanoseconds by which the job would end earlier with other work between the meetings.

        Args:
            work_ns: (meetings, ranks) each rank's own time before each meeting.
        """
        work, after_end = self._work()
        return int(self._last_end(work, after_end) - self._last_end(work_ns, after_end))

    def _work(self) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Each rank's own time before each meeting, and whether it counts from the end of the one before."""
        work = np.zeros_like(self.ready_ns)
        after_end = np.zeros(self.ready_ns.shape, bool)
        for column in range(len(self.ranks)):
            rows = np.flatnonzero(self.ready_ns[:, column] != ABSENT)
            ready = self.ready_ns[rows, column]
            ended = np.concatenate([[0], self.end_ns[rows][:-1]])
            before = np.concatenate([[0], ready[:-1]])
            waited = ready >= ended
            work[rows, column] = np.where(waited, ready - ended, ready - before)
            after_end[rows, column] = waited
        return np.maximum(work, 0), after_end

    def _last_end(self, work: Ints, after_end: npt.NDArray[np.bool_]) -> int:
        ready, ended = (np.zeros(len(self.ranks), np.int64) for _ in range(2))
        free: dict[int, int] = {}
        duration = self.end_ns - self.start_ns
        for row in range(len(self)):
            members = self.ready_ns[row] != ABSENT
            own = np.where(after_end[row], ended, ready) + work[row]
            ready = np.where(members, own, ready)
            group = int(self.group[row])
            start = max(int(own[members].max()), free.get(group, 0))
            free[group] = start + int(duration[row])
            ended = np.where(members, free[group], ended)
        return int(max(free.values(), default=0))


def rank_meetings(profile: Profile) -> RankMeetings:
    """The meetings of a profile's ranks; those that only one rank recorded are left out."""
    table = profile.query(_MEETINGS).to_pydict()
    columns = dict(sorted(set(zip(table["process"], table["rank"]))))
    places = {process: place for place, process in enumerate(columns)}
    groups = {name: number for number, name in enumerate(dict.fromkeys(table["meeting_group"]))}
    rows: dict[tuple[str, int], int] = {}
    for key in zip(table["meeting_group"], table["number"]):
        rows.setdefault(key, len(rows))
    ready = np.full((len(rows), len(columns)), ABSENT, np.int64)
    start, end, group = (np.zeros(len(rows), np.int64) for _ in range(3))
    operations = [""] * len(rows)
    for name, number, process, operation, ready_ns, start_ns, end_ns in zip(
        *(
            table[column]
            for column in (
                "meeting_group", "number", "process", "operation", "ready_ns", "start_ns", "end_ns",
            )
        )
    ):  # fmt: skip
        row = rows[name, number]
        operations[row] = operation or ""
        ready[row, places[process]] = ready_ns
        start[row], end[row], group[row] = start_ns, end_ns, groups[name]
    kept = (ready != ABSENT).sum(axis=1) > 1
    return RankMeetings(
        tuple(columns), tuple(columns.values()), ready[kept], start[kept], end[kept], group[kept],
        tuple(np.array(operations)[kept].tolist()),
    )  # fmt: skip
