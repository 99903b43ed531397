"""When which groups are due: each in its own period, counted on a clock that is never set back."""

from __future__ import annotations

from neuron_monitor.report.config import Configuration, Group


class Schedule:
    """The next due time of every group.

    Args:
        configuration: The groups.
        start_ns: Monotonic time from which the first periods count.
        first_after_ns: How long after `start_ns` all groups are due for the first time.
    """

    def __init__(self, configuration: Configuration, start_ns: int, first_after_ns: int) -> None:
        self._groups = [
            *dict.fromkeys(
                [*configuration.system, *(group for each in configuration.runtimes for group in each.groups)]
            )
        ]
        self._periods_ns = [round(group.period_s * 1e9) for group in self._groups]
        self._due_ns = [start_ns + first_after_ns] * len(self._groups)
        self._next_ns = start_ns + first_after_ns
        # Of groups that have one period all are due or none.
        self._are_alike = len(set(self._periods_ns)) == 1

    def next_ns(self) -> int:
        """When the next group is due."""
        return self._next_ns

    def take_due(self, now_ns: int) -> list[Group]:
        """The groups that are due now; the same object where all are.

        Periods that were missed, because the host slept, are left out.
        """
        if now_ns < self._next_ns:
            return []
        if self._are_alike:
            period_ns = self._periods_ns[0]
            self._next_ns += ((now_ns - self._next_ns) // period_ns + 1) * period_ns
            return self._groups
        due = [number for number, due_ns in enumerate(self._due_ns) if due_ns <= now_ns]
        for number in due:
            period_ns = self._periods_ns[number]
            passed = (now_ns - self._due_ns[number]) // period_ns + 1
            self._due_ns[number] += passed * period_ns
        self._next_ns = min(self._due_ns)
        return self._groups if len(due) == len(self._groups) else [self._groups[number] for number in due]
