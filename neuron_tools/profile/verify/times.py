"""Rules about time: spans run forwards, engines are in order, busy time fits into the total."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_tools.profile.derive.busy import EngineKey, read_busy_time
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store.recorded import RecordedTables
from neuron_tools.profile.verify.breach import (
    ABSOLUTE_TOLERANCE,
    MAX_PER_RULE,
    Breach,
    breaches,
    listed,
)


def check_spans(recorded: RecordedTables) -> Iterator[Breach]:
    """end_ts >= start_ts, and duration_ns is their difference."""
    for name in recorded.table_names():
        columns = TABLES[name].by_name
        if "start_ts" in columns and "end_ts" in columns:
            yield from breaches(
                recorded, name, "end_ts < start_ts", "ends after it starts", "'>= ' || start_ts", "end_ts"
            )
        if {"start_ts", "end_ts", "duration_ns"} <= columns.keys():
            wrong = "end_ts >= start_ts AND duration_ns <> end_ts - start_ts"
            what = "duration_ns is end_ts - start_ts"
            yield from breaches(recorded, name, wrong, what, "end_ts - start_ts", "duration_ns")


def check_engine_order(recorded: RecordedTables) -> Iterator[Breach]:
    """Instructions of one engine of one core start in the order in which they were issued.

    Engines are in order (Program: "Instructions of one engine run in table order"). Only simulated profiles
    number instructions in that order; the ids of real captures are hashes.
    """
    if recorded.row("SELECT bool_or(is_simulation) AS simulated FROM Metadata")["simulated"]:
        yield from listed(
            recorded,
            "Instruction",
            "starts no earlier than the instruction before it on its engine",
            f"""
            WITH ordered AS (
                SELECT id, start_ts, lag(start_ts) OVER (
                    PARTITION BY process_idx, pcore_idx, engine ORDER BY id) AS before
                FROM Instruction)
            SELECT id AS row_id, '>= ' || before AS expected, start_ts AS found
            FROM ordered WHERE start_ts < before LIMIT {MAX_PER_RULE}
            """,
        )


def check_active_time(recorded: RecordedTables) -> Iterator[Breach]:
    """ActiveTime rows of an engine are apart, and add up to the union of the engine's spans."""
    if not recorded.row_count("ActiveTime"):
        return
    yield from listed(
        recorded,
        "ActiveTime",
        "begins after the interval before it has ended",
        f"""
        WITH ordered AS (
            SELECT *, lag(end_ts) OVER (
                PARTITION BY process_idx, pcore_idx, engine ORDER BY start_ts) AS before
            FROM ActiveTime)
        SELECT engine || ' start_ts=' || start_ts AS row_id, '> ' || before AS expected, start_ts AS found
        FROM ordered WHERE start_ts <= before LIMIT {MAX_PER_RULE}
        """,
    )
    yield from _active_time_sums(recorded)


def _active_time_sums(recorded: RecordedTables) -> Iterator[Breach]:
    with read_busy_time(recorded) as busy:
        expected = {key: islands.total for key, islands in busy.by_engine().items()}
    stored = recorded.rows("""
        SELECT coalesce(process_idx, 0) AS process_idx, pcore_idx, engine, sum(duration_ns) AS ns
        FROM ActiveTime GROUP BY ALL
    """)
    found = {EngineKey(row["process_idx"], row["pcore_idx"], row["engine"]): int(row["ns"]) for row in stored}
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key, 0) != found.get(key, 0):
            where = f"process {key[0]} core {key[1]} {key[2]}"
            what = "adds up to the union of the engine's spans"
            yield Breach("ActiveTime", where, what, f"{expected.get(key, 0)} ns", f"{found.get(key, 0)} ns")


def check_total_time(recorded: RecordedTables) -> Iterator[Breach]:
    """No union of busy time is longer than the total."""
    for row in recorded.rows("SELECT * FROM Summary"):
        total = row["total_time"]
        for name, value in row.items():
            is_union = name.endswith("_active_time") or name in ("total_active_time", "total_exec_time")
            if is_union and total is not None and value is not None and value > total + ABSOLUTE_TOLERANCE:
                yield Breach("Summary", "", f"{name} fits into total_time", f"<= {total}", f"{value}")
