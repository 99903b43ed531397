"""Rules about amounts: the summary agrees with the rows, and a copy writes what it reads."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_tools.profile.derive.summary import ENGINES, NANOSECOND
from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.verify.breach import Breach, breaches, close

_SUMS = """
    SELECT lower(engine) AS engine, count(*) AS instruction_count,
           CAST(sum(duration_ns) AS DOUBLE) AS instruction_ns
    FROM Instruction GROUP BY 1
"""


def check_copies(recorded: RecordedTables) -> Iterator[Breach]:
    """A DMA transfer writes as many bytes as it reads."""
    for table in ("DmaPacket", "DmaPacketAggregated"):
        what = "bytes written are the bytes read"
        yield from breaches(recorded, table, "write_bytes <> read_bytes", what, "read_bytes", "write_bytes")


def check_summary(recorded: RecordedTables) -> Iterator[Breach]:
    """Instruction time and count of each engine are those of its rows, in Summary and OpcodeSummary."""
    if not recorded.row_count("Instruction"):
        return
    by_engine = {row["engine"]: row for row in recorded.rows(_SUMS)}
    none = {"instruction_count": 0, "instruction_ns": 0.0}
    for metrics in recorded.rows("SELECT * FROM Summary"):
        for engine in ENGINES:
            rows = by_engine.get(engine, none)
            for name, expected in (
                (f"{engine}_engine_instruction_time", rows["instruction_ns"] * NANOSECOND),
                (f"{engine}_engine_instruction_count", rows["instruction_count"]),
            ):
                found = metrics[name]
                if found is not None and not close(expected, found):
                    yield Breach("Summary", "", f"{name} is the sum of the rows", f"{expected}", f"{found}")
    yield from _opcode_sums(recorded)


def _opcode_sums(recorded: RecordedTables) -> Iterator[Breach]:
    if not recorded.row_count("OpcodeSummary"):
        return
    rows = recorded.rows("""
        WITH summed AS (
            SELECT engine, opcode, count(*) AS n, CAST(sum(duration_ns) AS BIGINT) AS ns
            FROM Instruction GROUP BY ALL)
        SELECT engine || ' ' || opcode AS row_id, n || ' in ' || ns || ' ns' AS expected,
               instruction_count || ' in ' || instruction_time_ns || ' ns' AS found
        FROM summed FULL JOIN OpcodeSummary USING (engine, opcode)
        WHERE n IS DISTINCT FROM instruction_count OR ns IS DISTINCT FROM instruction_time_ns
    """)
    for row in rows:
        what = "count and time are those of the instructions"
        yield Breach("OpcodeSummary", row["row_id"], what, f"{row['expected']}", f"{row['found']}")
