"""Rules about what lies inside what: every level within the level above it."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.verify.breach import MAX_PER_RULE, Breach, listed


def check_hierarchy(recorded: RecordedTables) -> Iterator[Breach]:
    """Instruction in HLO operation, that in framework operation, that in execution; nodes in nodes."""
    yield from _within(recorded, "Instruction", "HloInstruction", "raw_hlo_id")
    yield from _within(recorded, "HloInstruction", "FrameworkInstruction", "raw_framework_id")
    yield from _within_executions(recorded)
    yield from _nodes(recorded)


def _within(recorded: RecordedTables, child: str, parent: str, key: str) -> Iterator[Breach]:
    """Each child lies within the rows of its parent's number, and the number exists.

    Other tools repeat a number for every execution, so a parent is the envelope of all rows that have it.
    """
    if not recorded.row_count(parent):
        return
    query = f"""
        WITH parents AS (
            SELECT coalesce(process_idx, 0) AS process, {key} AS number,
                   min(start_ts) AS first, max(end_ts) AS last
            FROM {parent} GROUP BY ALL)
        SELECT c.id AS row_id, {{expected}} AS expected, {{found}} AS found
        FROM {child} c {{join}} parents p
        ON p.number = c.{key} AND p.process = coalesce(c.process_idx, 0)
        WHERE {{condition}} LIMIT {MAX_PER_RULE}
    """
    dangling = query.format(
        expected=f"'a row of {parent}'", found=f"c.{key}", join="ANTI JOIN", condition=f"c.{key} IS NOT NULL"
    )
    yield from listed(recorded, child, f"{key} resolves", dangling)
    outside = query.format(
        expected="'[' || p.first || ', ' || p.last || ']'",
        found="'[' || c.start_ts || ', ' || c.end_ts || ']'",
        join="JOIN",
        condition="c.start_ts < p.first OR c.end_ts > p.last",
    )
    yield from listed(recorded, child, f"lies within its {parent}", outside)


def _within_executions(recorded: RecordedTables) -> Iterator[Breach]:
    if not recorded.row_count("ExecutionInfo"):
        return
    query = f"""
        WITH executions AS (
            SELECT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core,
                   execution_start_ts AS start_ts, execution_end_ts AS end_ts
            FROM ExecutionInfo WHERE execution_start_ts IS NOT NULL)
        SELECT f.id AS row_id,
               coalesce('[' || e.start_ts || ', ' || e.end_ts || ']', 'an execution') AS expected,
               '[' || f.start_ts || ', ' || f.end_ts || ']' AS found
        FROM FrameworkInstruction f ASOF LEFT JOIN executions e
        ON e.process = coalesce(f.process_idx, 0) AND e.core = coalesce(f.pcore_idx, 0)
           AND f.start_ts >= e.start_ts
        WHERE e.start_ts IS NULL OR f.end_ts > e.end_ts LIMIT {MAX_PER_RULE}
    """
    yield from listed(recorded, "FrameworkInstruction", "lies within its execution", query)


def _nodes(recorded: RecordedTables) -> Iterator[Breach]:
    query = f"""
        SELECT c.node_name AS row_id, '[' || p.start_ts || ', ' || p.end_ts || ']' AS expected,
               '[' || c.start_ts || ', ' || c.end_ts || ']' AS found
        FROM FrameworkNode c JOIN FrameworkNode p ON p.id = c.parent_id
        WHERE c.start_ts < p.start_ts OR c.end_ts > p.end_ts LIMIT {MAX_PER_RULE}
    """
    yield from listed(recorded, "FrameworkNode", "lies within its parent node", query)
