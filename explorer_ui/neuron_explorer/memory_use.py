"""Memory over time for drawing: HBM by category, SBUF and PSUM fill, the address map of one executable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuron_explorer import results
from neuron_explorer.analyses import analysis
from neuron_profile.analysis.advice.context import Context, ProgramUse
from neuron_profile.analysis.held_over_time import held_over_time
from neuron_profile.analysis.memory import MemoryUse, measure_memory
from neuron_tools.arrays import Floats, Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.schema import TABLES
from neuron_tools.records.program import Memory

MEMORY, HBM_SERIES, FILL_SERIES, PROGRAMS = "memory", "hbm-series", "fill-series", "programs"
POINTS = 400
MOST_TILES = 900

_CATEGORIES = tuple(
    name
    for name in TABLES["SystemProfileHbmUsage"].column_names
    if name.endswith("_bytes") and name != "total_bytes"
)
_RANGE = "SELECT min(timestamp) AS first, max(timestamp) AS last, count(*) AS samples FROM {table}"
_HBM = f"""
SELECT CAST(floor((timestamp - $first) / $step) AS BIGINT) AS place, coalesce(device_idx, 0) AS device,
    max(timestamp) AS time_ns, {", ".join(f"arg_max({name}, total_bytes) AS {name}" for name in _CATEGORIES)}
FROM SystemProfileHbmUsage GROUP BY place, device ORDER BY device, place
"""
_FILL = """
SELECT CAST(floor((timestamp - $first) / $step) AS BIGINT) AS place, coalesce(process_idx, 0) AS process,
    coalesce(pcore_idx, 0) AS core, min(timestamp) AS time_ns, max(avg_util_percent) AS peak,
    avg(avg_util_percent) AS mean
FROM {table} GROUP BY place, process, core ORDER BY process, core, place
"""


@frozen
class HbmSeries:
    """Bytes of one device by category over time; categories that are never used are left out."""

    device: int
    time_ns: tuple[int, ...]
    bytes_by_category: Mapping[str, tuple[int, ...]]


@frozen
class FillSeries:
    """How full SBUF or PSUM of one core was over time, as parts of it (0 to 1)."""

    memory: str
    process: int
    core: int
    time_ns: tuple[int, ...]
    peak: tuple[float, ...]
    mean: tuple[float, ...]


@frozen
class ProgramEntry:
    """A program of the profile; `key` names it in addresses."""

    key: str
    name: str
    count: int
    duration_ns: float


@frozen
class AddressMap:
    """Tiles of one memory in one execution of a program, as rectangles.

    Attributes:
        start_ns, end_ns: From the first write to the last use, from the execution's start.
        address, byte_count: Inside each partition.
        owner: HLO operation that made each tile.
        hidden: Tiles that were left out, the least by time and bytes.
    """

    memory: str
    start_ns: Floats
    end_ns: Floats
    address: Ints
    byte_count: Ints
    partitions: Ints
    owner: tuple[str, ...]
    hidden: int


@analysis(MEMORY, "Measuring memory")
def memory(profile: Profile) -> MemoryUse:
    """Peaks, fill, tensors and spills."""
    return measure_memory(profile, tensors=300)


@analysis(HBM_SERIES, "Reading what HBM held")
def hbm_series(profile: Profile) -> tuple[HbmSeries, ...]:
    """One series per device that held anything, by the categories of its tensors; else as samples tell it."""
    if held := held_over_time(profile, POINTS):
        return tuple(HbmSeries(each.core, each.time_ns, each.by_category) for each in held)
    grid = _grid(profile, "SystemProfileHbmUsage")
    if grid is None:
        return ()
    rows = results.rows(profile, _HBM, grid)
    devices = dict.fromkeys(row["device"] for row in rows)
    until_ns = profile.range_ns[1] if profile.range_ns is not None else None
    return tuple(
        _hbm(device, [row for row in rows if row["device"] == device], until_ns) for device in devices
    )


def _hbm(device: int, rows: Sequence[Mapping[str, Any]], until_ns: int | None) -> HbmSeries:
    """The series of a device; what it held last it holds until the end of a range."""
    if until_ns is not None and rows[-1]["time_ns"] < until_ns:
        rows = [*rows, {**rows[-1], "time_ns": until_ns}]
    times = tuple(row["time_ns"] for row in rows)
    columns = {
        name.removesuffix("_bytes").replace("_", " "): tuple(int(row[name] or 0) for row in rows)
        for name in _CATEGORIES
    }
    return HbmSeries(device, times, {name: values for name, values in columns.items() if any(values)})


@analysis(FILL_SERIES, "Reading how full SBUF and PSUM were")
def fill_series(profile: Profile) -> tuple[FillSeries, ...]:
    """One series per memory and core."""
    found = []
    for name, table in (("SBUF", "SbufUsage"), ("PSUM", "PsumUsage")):
        grid = _grid(profile, table)
        rows = results.rows(profile, _FILL.format(table=table), grid) if grid else []
        for process, core in dict.fromkeys((row["process"], row["core"]) for row in rows):
            here = [row for row in rows if (row["process"], row["core"]) == (process, core)]
            times, peak, mean = (tuple(row[key] for row in here) for key in ("time_ns", "peak", "mean"))
            found.append(FillSeries(name, process, core, times, peak, mean))
    return tuple(found)


def _grid(profile: Profile, table: str) -> dict[str, float] | None:
    """First time and length of a step, so that there are at most `POINTS`; None without samples."""
    row = results.rows(profile, _RANGE.format(table=table))[0]
    if not row["samples"]:
        return None
    return {"first": row["first"], "step": max(1.0, (row["last"] - row["first"] + 1) / POINTS)}


@analysis(PROGRAMS, "Simulating the programs that ran", of_whole=True, is_heavy=True)
def programs(profile: Profile) -> tuple[tuple[ProgramEntry, ProgramUse], ...]:
    """Programs by falling time of all their executions; none where the profile does not hold them."""
    names = {
        (row["process"], row["executable_idx"]): row["name"]
        for row in results.rows(
            profile, "SELECT coalesce(process_idx, 0) AS process, executable_idx, name FROM Executable"
        )
    }
    found = [(_entry(use, names.get((use.key[0], use.key[1]), "")), use) for use in Context(profile).programs]
    return tuple(sorted(found, key=lambda item: -item[0].duration_ns * item[0].count))


def _entry(use: ProgramUse, name: str) -> ProgramEntry:
    process, executable = use.key[0], use.key[1]
    return ProgramEntry(f"{process}-{executable}", name, use.count, use.simulation.duration_ps / 1000)


def has_tiles(use: ProgramUse, memory: str) -> bool:
    """Whether a program used any tile of a memory."""
    return bool(len(_used_tiles(use, memory)))


def _used_tiles(use: ProgramUse, memory: str) -> Ints:
    tiles = use.program.tiles
    used: Ints = np.flatnonzero(
        (tiles["memory"] == Memory[memory].value) & (tiles["first_use"] >= 0) & (tiles["last_use"] >= 0)
    )
    return used


def address_map(use: ProgramUse, memory: str) -> AddressMap:
    """Where the tiles of a memory stood, and when, in one execution."""
    program, simulation = use.program, use.simulation
    tiles = program.tiles
    chosen = _used_tiles(use, memory)
    first, last = tiles["first_use"][chosen], tiles["last_use"][chosen]
    start = simulation.start_ps[first] / 1000
    end = np.maximum(_ends_ns(use)[last], start)
    area = (end - start + 1) * tiles["bytes_per_partition"][chosen]
    kept = np.sort(np.argsort(-area, kind="stable")[:MOST_TILES])
    rows = chosen[kept]
    owners = program.instructions["hlo"][first[kept]]
    return AddressMap(
        memory, start[kept], end[kept],
        tiles["address"][rows].astype(np.int64), tiles["bytes_per_partition"][rows].astype(np.int64),
        tiles["partitions"][rows].astype(np.int64),
        tuple(program.hlo[row].name if 0 <= row < len(program.hlo) else "" for row in owners.tolist()),
        len(chosen) - len(kept),
    )  # fmt: skip


def _ends_ns(use: ProgramUse) -> Floats:
    """When the work of each instruction ends; of one that starts a DMA, when the DMA does."""
    ends = use.simulation.end_ps.astype(np.float64)
    dma = use.program.instructions["dma"]
    triggers = np.flatnonzero(dma >= 0)
    ends[triggers] = np.maximum(ends[triggers], use.simulation.dma_end_ps[dma[triggers]])
    scaled: Floats = ends / 1000
    return scaled
