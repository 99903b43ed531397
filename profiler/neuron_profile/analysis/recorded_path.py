"""The critical path of a device profile that does not hold its programs, along the dependencies it records.

It is walked back from the last instruction: each came after the last to end of those it depends on (Flow) and
the one before it on its engine. What lies between two of them is a wait, for a DMA where the earlier one
started one. The stretches add up to the time from the first instruction to the end of the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.critical_path import CriticalPath, PathEntry
from neuron_tools.arrays import Ints, Mask
from neuron_tools.profile.reader import Profile

WAITING_FOR_DMA, WAITING = "DMA", "semaphore"
START = "start"

_CORES = """
SELECT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core, sum(end_ts - start_ts) AS busy_ns
FROM Instruction GROUP BY ALL ORDER BY busy_ns DESC, process, core LIMIT 1
"""
_HERE = "FROM Instruction WHERE coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ?"
_PLACE = """
coalesce(engine, '') AS engine, coalesce(framework_name, hlo_name, opcode, '') AS operation,
    coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line
"""
# Texts are read once for each place; rows carry its hash.
_HASH = "hash(engine, operation, file, line) >> 1"
_PLACES = f"SELECT *, {_HASH} AS place FROM (SELECT DISTINCT {_PLACE} {_HERE}) ORDER BY place"
_INSTRUCTIONS = f"""
SELECT id, start_ts, end_ts, CAST({_HASH} AS BIGINT) AS place
FROM (SELECT id, start_ts, end_ts, {_PLACE} {_HERE})
"""
_FLOWS = """
SELECT in_id AS before, out_id AS after FROM Flow
WHERE coalesce(in_table, 'Instruction') = 'Instruction' AND coalesce(out_table, 'Instruction') = 'Instruction'
"""
_TRIGGERS = "SELECT DISTINCT trigger FROM DmaPacketAggregated WHERE trigger IS NOT NULL"


@dataclass(frozen=True)
class _Rows:
    """Instructions of one core by start, then end.

    Attributes:
        place: Row of `places` of each: engine, operation, file and line.
    """

    ids: Ints
    start: Ints
    end: Ints
    place: Ints
    places: pa.Table

    @property
    def engine(self) -> Ints:
        """Number of each row's engine."""
        encoded = self.places["engine"].combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        of_rows: Ints = codes[self.place]
        return of_rows


def find_recorded_path(profile: Profile) -> CriticalPath | None:
    """The path of the busiest core; None where there are no instructions."""
    from neuron_profile.analysis.recorded_path_kernel import walk

    cores = profile.query(_CORES).to_pylist()
    if not cores:
        return None
    rows = _read(profile, [cores[0]["process"], cores[0]["core"]])
    before = _predecessors(rows, profile.query(_FLOWS))
    busy_ns, wait_ns = np.zeros_like(rows.start), np.zeros_like(rows.start)
    last = int(np.argmax(rows.end))
    first = walk(rows.start, rows.end, before, last, busy_ns, wait_ns)
    triggers = profile.query(_TRIGGERS)["trigger"].to_numpy().astype(np.int64)
    for_dma = (before >= 0) & np.isin(rows.ids[before], triggers)
    begin = int(rows.start[0])
    entries = [
        *_entries(rows, busy_ns, busy_ns > 0, ""),
        *_entries(rows, wait_ns, (wait_ns > 0) & for_dma, WAITING_FOR_DMA),
        *_entries(rows, wait_ns, (wait_ns > 0) & ~for_dma, WAITING),
    ]
    if rows.start[first] > begin:
        entries.append(PathEntry(START, "", "", 0, float(rows.start[first] - begin), 1))
    entries.sort(key=lambda entry: (-entry.path_ns, entry.resource, entry.operation, entry.line))
    return CriticalPath(float(rows.end[last] - begin), tuple(entries))


def _entries(rows: _Rows, time_ns: Ints, chosen: Mask, resource: str) -> Iterator[PathEntry]:
    """Times of chosen instructions by place.

    Args:
        resource: What the time is of; "" = the engine.
    """
    place = rows.place[chosen]
    spent = np.bincount(place, weights=time_ns[chosen], minlength=rows.places.num_rows)
    count = np.bincount(place, minlength=rows.places.num_rows)
    used = np.flatnonzero(count)
    totals: dict[tuple[str, str, str, int], list[float]] = {}
    for number, row in zip(used.tolist(), rows.places.take(used).to_pylist()):
        key = (resource or row["engine"], row["operation"], row["file"], row["line"])
        total = totals.setdefault(key, [0.0, 0])
        total[0] += float(spent[number])
        total[1] += int(count[number])
    for key, (time, times) in totals.items():
        yield PathEntry(*key, path_ns=time, count=int(times))


def _read(profile: Profile, core: list[int]) -> _Rows:
    places = profile.query(_PLACES, core)
    table = profile.query(_INSTRUCTIONS, core)
    start, end = (table[name].to_numpy().astype(np.int64, copy=False) for name in ("start_ts", "end_ts"))
    order = np.lexsort((end, start))
    known = places["place"].to_numpy().astype(np.int64)
    place = np.searchsorted(known, table["place"].to_numpy())[order]
    return _Rows(
        table["id"].to_numpy().astype(np.int64, copy=False)[order], start[order], end[order], place, places
    )


def _predecessors(rows: _Rows, flows: pa.Table) -> Ints:
    """For each row, what it came after: of all that it depends on, the last to end; -1 = nothing."""
    engine = rows.engine
    order = np.argsort(engine, kind="stable")
    before = np.full(len(rows.ids), -1, np.int64)
    same = engine[order[1:]] == engine[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    earlier, later = _recorded(rows, flows)
    if not len(later):
        return before
    by_end = np.lexsort((rows.end[earlier], later))
    earlier, later = earlier[by_end], later[by_end]
    latest = np.append(later[1:] != later[:-1], True)
    producer, held = earlier[latest], later[latest]
    alone = before[held] < 0
    decides = alone | (rows.end[producer] >= rows.end[np.where(alone, producer, before[held])])
    before[held[decides]] = producer[decides]
    return before


def _recorded(rows: _Rows, flows: pa.Table) -> tuple[Ints, Ints]:
    """Pairs of rows of which the second depends on the first.

    A row comes later than what it depends on: only such pairs are kept, so that the walk ends.
    """
    by_id = np.argsort(rows.ids, kind="stable")
    known = rows.ids[by_id]
    sides = []
    for name in ("before", "after"):
        wanted = flows[name].to_numpy().astype(np.int64)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        sides.append(np.where(known[place] == wanted, by_id[place], -1))
    real = (sides[0] >= 0) & (sides[1] >= 0)
    earlier, later = sides[0][real], sides[1][real]
    real = rows.start[earlier] < rows.start[later]
    return earlier[real], later[real]
