"""How executions ended: the driver's statuses, summed up under the report's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neuron_monitor.api import kernels, python_kernels
from neuron_monitor.api.layout import NO_COUNTS, STATUS_NODES, STATUS_SLICE
from neuron_monitor.api.readings import CoreReading, ProcessReading

_NO_STATUSES = (0,) * len(STATUS_NODES)
_POSITIONS = {name: position for position, name in enumerate(STATUS_NODES)}

# The report's name and the driver's status node (sysfs guide, "status").
SUMMARY_STATUSES: dict[str, tuple[str, ...]] = {
    "completed": ("success",),
    "completed_with_err": ("execute_completed_with_error",),
    "completed_with_num_err": ("execute_completed_with_num_error",),
    "timed_out": ("timeout",),
    "incorrect_input": ("exec_bad_input",),
    "failed_to_queue": ("execute_failed_to_queue",),
}
# AWS does not publish which status belongs to which kind of error; this follows the statuses' names. Each is
# in one kind only.
ERROR_STATUSES: dict[str, tuple[str, ...]] = {
    "generic": ("failure", "generic_error", "execute_completed_with_error"),
    "numerical": ("execute_completed_with_num_error",),
    "transient": ("execute_failed_to_queue", "execute_sw_nq_overflow", "hw_repairable_hbm_ue_error"),
    "model": (
        "exec_bad_input",
        "unsupported_neff_version",
        "oob_error",
        "execute_sw_semaphore_error",
        "execute_sw_event_error",
        "execute_sw_psum_collision",
        "execute_sw_sequencer_fatal",
    ),
    "runtime": ("timeout", "resource_error", "resource_nc_error", "invalid_error"),
    "hardware": (
        "hw_error",
        "hw_collectives_error",
        "hw_hbm_ue_error",
        "hw_nc_ue_error",
        "hw_dma_abort_error",
    ),
}


# Of each number of `execution_numbers`, the columns of the statuses that are part of it.
OUTCOME_COLUMNS = tuple(
    tuple(STATUS_SLICE.start + _POSITIONS[status] for status in parts)
    for parts in (*ERROR_STATUSES.values(), *SUMMARY_STATUSES.values())
)
_NO_ERRORS = (0,) * len(ERROR_STATUSES)
_ONLY_COMPLETED = (0,) * (len(SUMMARY_STATUSES) - 1)
Statuses = Sequence[int]
"""Executions by status, in the order of the driver's statuses; empty where there are none."""


def summed(statuses: Statuses, names: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Counts by the report's names."""
    if not any(statuses[1:]):  # All that ended ended well: the first status is success.
        counts = dict.fromkeys(names, 0)
        if "completed" in counts and statuses:
            counts["completed"] = statuses[0]
        return counts
    return {name: sum(statuses[_POSITIONS[status]] for status in parts) for name, parts in names.items()}


def execution_numbers(before: ProcessReading, after: ProcessReading, completed: int) -> tuple[int, ...]:
    """What was executed between two readings: errors by `ERROR_STATUSES`, then all by `SUMMARY_STATUSES`.

    Args:
        completed: The executions that ended well, where all did; below 0 where others ended too.
    """
    if completed >= 0:  # What ended well is the first of the summary.
        return (*_NO_ERRORS, completed, *_ONLY_COMPLETED)
    statuses = statuses_between(before, after)
    errors = summed(statuses, ERROR_STATUSES).values()
    return (*errors, *summed(statuses, SUMMARY_STATUSES).values())


def statuses_between(before: ProcessReading, after: ProcessReading) -> Statuses:
    """Executions by status that a process's cores added; after a reset, what was counted since then."""
    each = [_added(before.cores.get(core_id), core) for core_id, core in after.cores.items()]
    return each[0] if len(each) == 1 else tuple(map(sum, zip(*each))) or _NO_STATUSES


def _added(before: CoreReading | None, core: CoreReading) -> tuple[int, ...]:
    """What a core added; one that was not used before added all that its process counted, if that is told."""
    after = core.counts
    old = before.counts if before is not None else NO_COUNTS if core.is_clocked else after
    try:
        return kernels.added(old, after, STATUS_SLICE.start, STATUS_SLICE.stop)
    except OverflowError:
        return python_kernels.added(old, after, STATUS_SLICE.start, STATUS_SLICE.stop)


def total_statuses(process: ProcessReading) -> Statuses:
    """Executions of a process by status, over all of its cores."""
    each = [core.counts[STATUS_SLICE] for core in process.cores.values()]
    return each[0] if len(each) == 1 else tuple(map(sum, zip(*each)))
