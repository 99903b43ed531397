"""The critical path of a device profile that does not hold its programs, along the dependencies it records.

It is walked back from the last instruction: each came after the last to end of those it depends on (Flow) and
the one before it on its engine. What lies between two of them is a wait, for a DMA where the earlier one
started one. The stretches add up to the time from the first instruction to the end of the last.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.critical_path import CriticalPath, PathEntry
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
WAITING_FOR_DMA, WAITING = "DMA", "semaphore"
START = "start"

_CORES = """
SELECT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core, sum(end_ts - start_ts) AS busy_ns
FROM Instruction GROUP BY ALL ORDER BY busy_ns DESC, process, core LIMIT 1
"""
_INSTRUCTIONS = """
SELECT id, engine, start_ts, end_ts, coalesce(framework_name, hlo_name, opcode, '') AS operation,
    coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line
FROM Instruction WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ? ORDER BY start_ts, end_ts
"""
_FLOWS = """
SELECT in_id AS before, out_id AS after FROM Flow
WHERE coalesce(in_table, 'Instruction') = 'Instruction' AND coalesce(out_table, 'Instruction') = 'Instruction'
"""
_TRIGGERS = "SELECT DISTINCT trigger FROM DmaPacketAggregated WHERE trigger IS NOT NULL"


@dataclass(frozen=True)
class _Rows:
    """Instructions of one core by start."""

    ids: Ints
    start: Ints
    end: Ints
    engine: list[str]
    places: list[tuple[str, str, int]]  # operation, file, line


def find_recorded_path(profile: Profile) -> CriticalPath | None:
    """The path of the busiest core; None where there are no instructions."""
    cores = profile.query(_CORES).to_pylist()
    if not cores:
        return None
    rows = _rows(profile.query(_INSTRUCTIONS, [cores[0]["process"], cores[0]["core"]]))
    before = _predecessors(rows, profile.query(_FLOWS))
    triggers = set(profile.query(_TRIGGERS)["trigger"].to_pylist())
    times: defaultdict[tuple[str, str, str, int], list[float]] = defaultdict(lambda: [0.0, 0])
    row = int(np.argmax(rows.end))
    now, begin = int(rows.end[row]), int(rows.start.min())
    total = now - begin
    while True:
        start = min(int(rows.start[row]), now)
        _add(times, rows.engine[row], rows.places[row], now - start)
        now = start
        ahead = int(before[row])
        if ahead < 0:
            _add(times, START, ("", "", 0), now - begin)
            break
        reached = min(int(rows.end[ahead]), now)
        waiting = WAITING_FOR_DMA if int(rows.ids[ahead]) in triggers else WAITING
        _add(times, waiting, rows.places[row], now - reached)
        now, row = reached, ahead
    entries = [
        PathEntry(*key, path_ns=time, count=int(count)) for key, (time, count) in times.items() if time
    ]
    entries.sort(key=lambda entry: (-entry.path_ns, entry.resource, entry.operation, entry.line))
    return CriticalPath(float(total), tuple(entries))


def _add(
    times: defaultdict[tuple[str, str, str, int], list[float]], resource: str, place: tuple[str, str, int],
    time_ns: int,
) -> None:  # fmt: skip
    entry = times[(resource, place[0], place[1], place[2])]
    entry[0] += time_ns
    entry[1] += 1


def _rows(table: pa.Table) -> _Rows:
    ids, start, end = (table[name].to_numpy().astype(np.int64) for name in ("id", "start_ts", "end_ts"))
    places = list(zip(*(table[name].to_pylist() for name in ("operation", "file", "line"))))
    return _Rows(ids, start, end, [engine or "" for engine in table["engine"].to_pylist()], places)


def _predecessors(rows: _Rows, flows: pa.Table) -> Ints:
    """For each row, what it came after: of all that it depends on, the last to end; -1 = nothing."""
    _, engines = np.unique(rows.engine, return_inverse=True)
    order = np.argsort(engines, kind="stable")
    before = np.full(len(rows.ids), -1, np.int64)
    same = engines[order[1:]] == engines[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    by_id = np.argsort(rows.ids, kind="stable")
    known = rows.ids[by_id]
    sides = []
    for name in ("before", "after"):
        wanted = flows[name].to_numpy().astype(np.int64)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        sides.append(np.where(known[place] == wanted, by_id[place], -1))
    # A row comes later than what it depends on: only such pairs are followed, so that the walk ends.
    real = (sides[0] >= 0) & (sides[1] >= 0)
    earlier, later = sides[0][real], sides[1][real]
    real = rows.start[earlier] < rows.start[later]
    earlier, later = earlier[real], later[real]
    for row in np.argsort(rows.end[earlier], kind="stable"):
        held, producer = int(later[row]), int(earlier[row])
        if before[held] < 0 or rows.end[producer] >= rows.end[before[held]]:
            before[held] = producer
    return before
