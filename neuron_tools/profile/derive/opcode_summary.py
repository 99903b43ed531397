"""OpcodeSummary: instruction time by engine and opcode."""

from __future__ import annotations

from typing import Any

from neuron_tools.profile.derive.busy import BusyTime
from neuron_tools.profile.store.recorded import RecordedTables

_COLUMNS = (
    "engine",
    "opcode",
    "instruction_count",
    "instruction_time_ns",
    "active_time_ns",
    "active_time_percent",
)
_QUERY = """
    SELECT engine, opcode, count(*) AS instruction_count,
           CAST(sum(duration_ns) AS BIGINT) AS instruction_time_ns
    FROM Instruction GROUP BY engine, opcode ORDER BY instruction_time_ns DESC, engine, opcode
"""


def opcode_summary(recorded: RecordedTables, busy: BusyTime, total_ns: int) -> dict[str, list[Any]]:
    """OpcodeSummary rows, longest first.

    Args:
        total_ns: Length of the profile; `active_time_percent` is the opcode's share of it, 0 to 1.
    """
    rows = recorded.rows(_QUERY)
    for row in rows:
        row["active_time_ns"] = busy.opcodes.of(busy.opcode_keys.number((row["engine"], row["opcode"]))).total
        row["active_time_percent"] = row["active_time_ns"] / total_ns if total_ns else 0.0
    return {name: [row[name] for row in rows] for name in _COLUMNS}
