"""What a check reports, and the few things all checks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.catalog import quoted
from neuron_tools.profile.store.recorded import RecordedTables

MAX_PER_RULE = 100
"""Rows listed for one rule of one table: a profile that breaks a rule everywhere is told often enough."""

RELATIVE_TOLERANCE = 1e-6  # other tools keep sums of seconds as 32-bit floats
ABSOLUTE_TOLERANCE = 1e-9


@frozen
class Breach:
    """One broken rule.

    Attributes:
        row_id: The row's `id`, or what else tells it from others; empty if the rule is about the table.
        what: The rule.
        expected: What the rule asks for in this row.
        found: What stands there.
    """

    table: str
    row_id: str
    what: str
    expected: str
    found: str


Check = Callable[[RecordedTables], Iterator[Breach]]


def row_id_sql(table: str, alias: str = "") -> str:
    """SQL text that names a row of a table: its id, or its track and time."""
    fields = TABLES[table].by_name
    prefix = f"{alias}." if alias else ""
    if "id" in fields and table != "SemaphoreUpdate":
        return f"CAST({prefix}{quoted('id')} AS VARCHAR)"
    candidates = (
        "node_name",
        "engine",
        "name",
        "opcode",
        "queue_name",
        "process_idx",
        "start_ts",
        "timestamp",
    )
    names = [name for name in candidates if name in fields][:4]
    if not names:
        return "''"
    return " || ' ' || ".join(f"coalesce('{name}=' || {prefix}{quoted(name)}, '')" for name in names)


def breaches(
    recorded: RecordedTables, table: str, condition: str, what: str, expected: str, found: str
) -> Iterator[Breach]:
    """A breach for each row of a table for which `condition` holds; `expected` and `found` are SQL."""
    query = f"""
        SELECT {row_id_sql(table)} AS row_id, CAST({expected} AS VARCHAR) AS expected,
               CAST({found} AS VARCHAR) AS found
        FROM {quoted(table)} WHERE {condition} LIMIT {MAX_PER_RULE}
    """
    yield from listed(recorded, table, what, query)


def listed(recorded: RecordedTables, table: str, what: str, query: str) -> Iterator[Breach]:
    """A breach for each row of a query with the columns row_id, expected and found."""
    for row in recorded.rows(query):
        yield Breach(table, _text(row["row_id"]), what, _text(row["expected"]), _text(row["found"]))


def close(left: float, right: float) -> bool:
    """Whether two sums agree within rounding."""
    return math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)


def _text(value: Any) -> str:
    return "null" if value is None else str(value)
