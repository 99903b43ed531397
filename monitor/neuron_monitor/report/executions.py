"""How executions ended: the driver's statuses, summed up under the report's names."""

from __future__ import annotations

from collections.abc import Mapping

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


def summed(statuses: Mapping[str, int], names: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Counts by the report's names."""
    return {name: sum(statuses.get(status, 0) for status in parts) for name, parts in names.items()}


def statuses_between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Executions by status that were added; after a reset of the counters, what was counted since then."""
    return {
        name: count - before.get(name, 0) if count >= before.get(name, 0) else count
        for name, count in after.items()
    }


def total_statuses(each: list[Mapping[str, int]]) -> dict[str, int]:
    """Sum over cores."""
    total: dict[str, int] = {}
    for statuses in each:
        for name, count in statuses.items():
            total[name] = total.get(name, 0) + count
    return total
