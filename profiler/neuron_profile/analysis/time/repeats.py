"""Executions that run alike: of each compiled graph one stands for all."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

REPEATED_FROM = 1 << 20  # instructions: with fewer, looking at all of them takes no longer
MOST_DISTINCT = 64
_INSTRUCTIONS = """
SELECT count(*) AS n FROM Instruction WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ?
"""
_EVENTS = """
SELECT count(*) AS n FROM SystemProfileEvents
WHERE name = 'nc_exec_running' AND coalesce(process_idx, 0) = ? AND coalesce(nc_idx, 0) = ?
"""
_OTHERS = """
SELECT 1 FROM (
    SELECT coalesce(process_idx, 0) AS process, executable_idx AS executable FROM ExecutionInfo
    WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ?
) LEFT JOIN (
    SELECT coalesce(process_idx, 0) AS process, executable_idx AS executable, kind FROM Executable
) USING (process, executable)
WHERE coalesce(kind, '') != 'graph' LIMIT 1
"""
_DISTINCT = """
WITH executions AS (
    SELECT executable_idx AS executable,
        execution_start_ts AS start_ns, execution_end_ts AS end_ns,
        execution_start_ts < lag(execution_end_ts) OVER (ORDER BY execution_start_ts) AS is_early
    FROM ExecutionInfo WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ?
)
SELECT executable, end_ns - start_ns AS duration_ns, min(start_ns) AS first_ns, count(*) AS n,
    coalesce(bool_or(is_early), false) AS is_early
FROM executions
GROUP BY executable, duration_ns ORDER BY first_ns
"""


@frozen
class Repeat:
    """One execution, from `begin_ns` to `end_ns`, and how many ran like it, itself included."""

    begin_ns: int
    end_ns: int
    count: int


def find_repeats(profile: Profile, core: tuple[int, int]) -> tuple[Repeat, ...] | None:
    """The distinct executions of a NeuronCore that stand for all that ran on it.

    A graph's instructions take the same time, from its start, in each of its executions of one duration. An
    eager operator's executions come from different places, so that none stands for the others.

    Args:
        core: Process and core.

    Returns:
        None where that does not hold, where there is little to look at anyway, and of a range of a profile,
        whose first and last executions may be cut.
    """
    if profile.range_ns is not None or count_instructions(profile, core) < REPEATED_FROM:
        return None
    if profile.query(_OTHERS, core).num_rows:  # looked for first: they may be too many to be put in order
        return None
    rows = profile.query(_DISTINCT, core).to_pylist()
    if not 0 < len(rows) <= MOST_DISTINCT or any(row["is_early"] for row in rows):
        return None
    if sum(row["n"] for row in rows) != _number(profile, _EVENTS, core):
        return None
    return tuple(Repeat(row["first_ns"], row["first_ns"] + row["duration_ns"], row["n"]) for row in rows)


def count_instructions(profile: Profile, core: tuple[int, int]) -> int:
    """Instructions of a NeuronCore: (process_idx, number)."""
    return _number(profile, _INSTRUCTIONS, core)


def _number(profile: Profile, query: str, core: tuple[int, int]) -> int:
    return int(profile.query(query, core).to_pylist()[0]["n"])
