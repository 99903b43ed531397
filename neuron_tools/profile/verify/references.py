"""Rules about numbers that point to rows: each is unique where it is made and exists where it is used."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.catalog import quoted, text_literal
from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.verify.breach import MAX_PER_RULE, Breach, listed

# SemaphoreUpdate.id names a semaphore, not a row.
_NOT_ROW_IDS = frozenset({"SemaphoreUpdate"})
_WAIT_CAUSES = ("Instruction", "DmaPacketAggregated")
_FRAME_IDS = "regexp_extract_all({column}, '[^,\\[\\]\\s\"]+')"


def check_unique_ids(recorded: RecordedTables) -> Iterator[Breach]:
    """No two rows of a table have the same id."""
    for name in recorded.table_names():
        if "id" in TABLES[name].by_name and name not in _NOT_ROW_IDS:
            query = f"""
                SELECT id AS row_id, 'once' AS expected, count(*) || ' times' AS found
                FROM {quoted(name)} GROUP BY id HAVING count(*) > 1 LIMIT {MAX_PER_RULE}
            """
            if _has_doubles(recorded, name):
                yield from listed(recorded, name, "id is unique", query)


def _has_doubles(recorded: RecordedTables, table: str) -> bool:
    row = recorded.row(f"SELECT count(id) AS ids, count(DISTINCT id) AS distinct_ids FROM {quoted(table)}")
    return bool(row["ids"] != row["distinct_ids"])


def check_flows(recorded: RecordedTables) -> Iterator[Breach]:
    """Both ends of a Flow row exist."""
    for end in ("in", "out"):
        tables = recorded.rows(f"SELECT DISTINCT {end}_table AS name FROM Flow")
        for name in sorted(str(row["name"]) for row in tables):
            if name not in TABLES or "id" not in TABLES[name].by_name:
                yield Breach("Flow", "", f"{end}_table is a table with ids", "a table's name", name)
                continue
            query = f"""
                SELECT f.{end}_id AS row_id, 'a row of {name}' AS expected, 'none' AS found
                FROM Flow f ANTI JOIN {quoted(name)} t ON t.id = f.{end}_id
                WHERE f.{end}_table = {text_literal(name)} LIMIT {MAX_PER_RULE}
            """
            yield from listed(recorded, "Flow", f"{end}_id exists", query)


def check_wait_causes(recorded: RecordedTables) -> Iterator[Breach]:
    """What an instruction waited for exists."""
    if "wait_cause_id" not in recorded.columns("Instruction"):
        return
    causes = " UNION ALL ".join(f"SELECT id FROM {table}" for table in _WAIT_CAUSES)
    query = f"""
        SELECT i.id AS row_id, 'an instruction or DMA transfer' AS expected, i.wait_cause_id AS found
        FROM Instruction i ANTI JOIN ({causes}) c ON c.id = i.wait_cause_id
        WHERE i.wait_cause_id IS NOT NULL LIMIT {MAX_PER_RULE}
    """
    yield from listed(recorded, "Instruction", "wait_cause_id exists", query)


def check_stack_frames(recorded: RecordedTables) -> Iterator[Breach]:
    """Stack frame ids lead to a frame, and from there to its caller, file, function and line."""
    for table in ("Instruction", "FrameworkInstruction", "HostSpan"):
        frames = _FRAME_IDS.format(column="stack_frame_ids")
        query = f"""
            WITH used AS (
                SELECT DISTINCT unnest({frames}) AS frame FROM (SELECT DISTINCT stack_frame_ids FROM {table}))
            SELECT frame AS row_id, 'a row of StackFrame' AS expected, 'none' AS found
            FROM used ANTI JOIN StackFrame s ON s.id = used.frame LIMIT {MAX_PER_RULE}
        """
        yield from listed(recorded, table, "stack_frame_ids resolve", query)
    for table, column, target in (
        ("StackFrame", "parent_frame_id", "StackFrame"),
        ("StackFrame", "file_location_id", "StackFrameFileLocation"),
        ("StackFrameFileLocation", "file_name_id", "StackFrameFileName"),
        ("StackFrameFileLocation", "function_name_id", "StackFrameFunctionName"),
    ):
        query = f"""
            SELECT s.id AS row_id, 'a row of {target}' AS expected, s.{column} AS found
            FROM {table} s ANTI JOIN {target} t ON t.id = CAST(s.{column} AS VARCHAR)
            WHERE CAST(s.{column} AS VARCHAR) <> '' LIMIT {MAX_PER_RULE}
        """
        yield from listed(recorded, table, f"{column} resolves", query)
