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
        groups = [*configuration.system, *(group for each in configuration.runtimes for group in each.groups)]
        self._due_ns = dict.fromkeys(groups, start_ns + first_after_ns)

    def next_ns(self) -> int:
        """When the next group is due."""
        return min(self._due_ns.values())

    def take_due(self, now_ns: int) -> list[Group]:
        """The groups that are due now. Periods that were missed, because the host slept, are left out."""
        due = [group for group, due_ns in self._due_ns.items() if due_ns <= now_ns]
        for group in due:
            period_ns = round(group.period_s * 1e9)
            passed = (now_ns - self._due_ns[group]) // period_ns + 1
            self._due_ns[group] += passed * period_ns
        return due
