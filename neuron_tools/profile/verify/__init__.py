"""Checks that a profile keeps the rules that hold for every profile, whoever wrote it.

One file per kind of rule; each check looks at the tables the profile has and lists what breaks its rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.verify.breach import MAX_PER_RULE, Breach, Check
from neuron_tools.profile.verify.description import check_parts, check_schema_fields
from neuron_tools.profile.verify.hierarchy import check_hierarchy
from neuron_tools.profile.verify.references import (
    check_flows,
    check_stack_frames,
    check_unique_ids,
    check_wait_causes,
)
from neuron_tools.profile.verify.sums import check_copies, check_summary
from neuron_tools.profile.verify.times import (
    check_active_time,
    check_engine_order,
    check_spans,
    check_total_time,
)
from neuron_tools.profile.verify.values import check_values

if TYPE_CHECKING:
    from neuron_tools.profile.reader import Profile

__all__ = ["CHECKS", "MAX_PER_RULE", "Breach", "Check", "verify"]

CHECKS: tuple[Check, ...] = (
    check_parts,
    check_values,
    check_spans,
    check_engine_order,
    check_active_time,
    check_total_time,
    check_hierarchy,
    check_unique_ids,
    check_flows,
    check_wait_causes,
    check_stack_frames,
    check_copies,
    check_summary,
    check_schema_fields,
)


def verify(profile: Profile) -> list[Breach]:
    """All breaches of a profile's rules, at most MAX_PER_RULE rows for one rule of one table.

    An incomplete profile is checked for what it holds; being incomplete is no breach.

    Example:
        >>> with open_profile("run.nprof") as profile:
        ...     for breach in verify(profile):
        ...         print(breach.table, breach.row_id, breach.what)
    """
    with RecordedTables(profile.path) as recorded:
        return [breach for check in CHECKS for breach in check(recorded)]
