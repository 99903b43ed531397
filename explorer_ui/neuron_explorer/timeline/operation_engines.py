"""Which engine each operation keeps busy for longest: what the timeline colors operations by."""

from __future__ import annotations

from typing import Any

from neuron_tools.profile.exposure import CONTROL_OPCODES
from neuron_tools.profile.reader import Profile

MOST_INSTRUCTIONS = 4_000_000
"""Of longer profiles the operations are not colored: it would take seconds."""
MOST_NAMES = 20_000

# Transfers run on many queues at once: an operation's DMA time is about its sum over the queues that it uses.
_ENGINES = """
WITH work AS (
    SELECT {id} AS id, lower(engine) AS engine, sum(end_ts - start_ts) AS ns
    FROM Instruction WHERE {id} IS NOT NULL AND opcode NOT IN {control}
    GROUP BY ALL
    UNION ALL
    SELECT {id}, 'dma', sum(end_ts - start_ts) / greatest(count(DISTINCT queue_name), 1)
    FROM DmaPacketAggregated WHERE {id} IS NOT NULL GROUP BY ALL
), named AS (
    SELECT operation.{name} AS name, engine, sum(ns) AS ns
    FROM work JOIN {table} operation ON operation.id = work.id GROUP BY ALL
)
SELECT name, max_by(engine, ns) AS engine FROM named WHERE name <> '' GROUP BY name
ORDER BY sum(ns) DESC, name LIMIT {most}
"""
_LEVELS = {
    "framework": ("FrameworkInstruction", "framework_name", "raw_framework_id"),
    "hlo": ("HloInstruction", "hlo_name", "raw_hlo_id"),
}


def operation_engines(profile: Profile) -> dict[str, Any]:
    """What colors by engine need.

    Returns:
        "operations": engine by name of a level's operations, `{"hlo": {"dot.1": "tensor"}}`; empty where a
        profile is very long. "control": opcodes of instructions that only order others.
    """
    tables = profile.tables()
    found = {}
    if 0 < tables.get("Instruction", 0) <= MOST_INSTRUCTIONS:
        found = {
            level: _engines(profile, *columns) for level, columns in _LEVELS.items() if tables.get(columns[0])
        }
    return {"operations": found, "control": CONTROL_OPCODES}


def _engines(profile: Profile, table: str, name: str, owner: str) -> dict[str, str]:
    query = _ENGINES.format(id=owner, name=name, table=table, most=MOST_NAMES, control=CONTROL_OPCODES)
    return {row["name"]: row["engine"] for row in profile.query(query).to_pylist()}
