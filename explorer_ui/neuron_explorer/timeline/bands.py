"""Findings and warnings as bands: when on the axis something runs that could be faster, or is held up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_explorer.analyses import analysis
from neuron_explorer.timeline.lit_spans import LitSpans
from neuron_explorer.timeline.parameters import TileRange
from neuron_explorer.timeline.piece_tiles import by_tile, piece_batch, piece_columns
from neuron_explorer.timeline.span_tiles import SCHEMA
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.spans import union
from neuron_profile.analysis.time.pieces import Pieces
from neuron_profile.reports.quantities import duration
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

WARNINGS = "timeline-warnings"
MOST_FINDINGS = 6
SMALL_BYTES = 512
"""A descriptor below this many bytes costs as much as one of them (`advice.rules.small_dma`)."""

_THROTTLED = """
SELECT timestamp AS start_ns, timestamp + duration AS end_ns, 'Throttled' AS name FROM Throttle
"""
_SMALL_DMA = f"""
SELECT start_ts AS start_ns, end_ts AS end_ns, 'Small DMA' AS name FROM DmaPacketAggregated
WHERE packet_count > 1 AND transfer_bytes < {SMALL_BYTES} * packet_count
UNION ALL
SELECT start_ts, end_ts, 'Small DMA' FROM DmaPacket WHERE transfer_bytes BETWEEN 1 AND {SMALL_BYTES - 1}
"""
_SPILLS = """
SELECT start_ts AS start_ns, end_ts AS end_ns, 'Spills' AS name FROM Instruction
WHERE coalesce(spill_save_bytes, 0) + coalesce(spill_reload_bytes, 0) > 0
"""
_STRAGGLERS = """
SELECT trigger_start_ts AS start_ns, start_ts AS end_ns, 'Waits for rank ' || last_rank AS name
FROM CcOp LEFT JOIN ProcessInfo USING (process_idx)
WHERE last_rank IS NOT NULL AND last_rank IS DISTINCT FROM rank AND trigger_start_ts < start_ts
"""
_WARNINGS = (_THROTTLED, _SMALL_DMA, _SPILLS, _STRAGGLERS)


@frozen
class Band:
    """Stretches of time that share a name, in one row of a track.

    Attributes:
        stretches: Starts and ends in ns of the profile; they do not overlap.
        details: What is told of it beside its name: columns as those of a table's row.
    """

    name: str
    depth: int
    stretches: tuple[Ints, Ints]
    details: dict[str, Any] = field(default_factory=dict)


@frozen
class BandTrack:
    """A track of bands: "Findings" or "Warnings"."""

    name: str
    bands: tuple[Band, ...]

    def answer(self, origin_ns: int) -> dict[str, Any]:
        """The track as the route `tracks` lists those of spans."""
        starts = [int(band.stretches[0][0]) for band in self.bands]
        ends = [int(band.stretches[1][-1]) for band in self.bands]
        return {
            "id": f"bands/{self.name.lower()}", "level": "band", "name": self.name, "headings": [],
            "rank": None, "core": None, "table": "", "unit": "", "counter": False, "charged": False,
            "spans": sum(len(band.stretches[0]) for band in self.bands),
            "depths": 1 + max(band.depth for band in self.bands),
            "start_ns": min(starts) - origin_ns, "end_ns": max(ends) - origin_ns, "least": 0, "greatest": 0,
        }  # fmt: skip

    def tiles(self, place: int, tiles: TileRange, origin_ns: int) -> list[pa.RecordBatch]:
        """Rows of `span_tiles.SCHEMA`; `row` is the band's place."""
        names = pa.array([band.name for band in self.bands]).dictionary_encode()
        batches = []
        for depth in range(1 + max(band.depth for band in self.bands)):
            pieces = _pieces(
                [(row, band) for row, band in enumerate(self.bands) if band.depth == depth],
            )
            for number in range(tiles.count):
                columns = piece_columns(pieces, tiles, number, origin_ns)
                rows = pa.array(columns["row"].astype(np.int64))
                batches.append(piece_batch(place, number, columns, names.take(rows), depth))
        return batches


def band_tiles(
    tracks: Sequence[BandTrack], places: Sequence[int], tiles: TileRange, origin_ns: int
) -> pa.Table:
    """Rows of some tracks of bands, in the order of `span_tiles`."""
    batches = [batch for place in places for batch in tracks[place].tiles(place, tiles, origin_ns)]
    return by_tile(pa.Table.from_batches(batches, SCHEMA))


@analysis(WARNINGS, "Looking for warnings")
def warning_bands(profile: Profile) -> tuple[Band, ...]:
    """What is throttled, moved in small pieces, spilled, or waits for another rank; one row for each kind."""
    bands: list[Band] = []
    for query in _WARNINGS:
        rows = profile.query(query)
        if not rows.num_rows:
            continue
        depth = 1 + max((band.depth for band in bands), default=-1)
        bands += [Band(name, depth, stretches) for name, stretches in _by_name(rows)]
    return tuple(bands)


def finding_bands(
    profile: Profile, findings: Sequence[Finding], lit: LitSpans, range_ns: tuple[int, int] | None
) -> tuple[Band, ...]:
    """When what the first findings are about runs, one row for each; those that are nowhere are left out."""
    bands: list[Band] = []
    for finding in findings:
        stretches = _stretches(profile, finding.place, lit, range_ns)
        if len(bands) < MOST_FINDINGS and len(stretches[0]):
            bands.append(Band(_title(finding), len(bands), stretches, _details(finding)))
    return tuple(bands)


def _title(finding: Finding) -> str:
    saved = f"saves {duration(finding.gain_ns)}: " if finding.gain_ns and finding.gain_ns > 0 else ""
    return f"{saved}{finding.title}"


def _details(finding: Finding) -> dict[str, Any]:
    place = finding.place
    told = {
        "change": finding.change, "rule": finding.rule, "source_file": place.file, "source_line": place.line,
        "framework_name": place.operation, "layer": place.module,
    }  # fmt: skip
    return {name: value for name, value in told.items() if value}


def _stretches(
    profile: Profile, place: Place, lit: LitSpans, range_ns: tuple[int, int] | None
) -> tuple[Ints, Ints]:
    """When anything of a place runs, on any track."""
    by, value = _key(place)
    spans = lit.of(profile, by, value).values() if value else ()
    none = np.zeros(0, np.int64)
    starts = np.concatenate([none, *(track.start_ns for track in spans)])
    ends = np.concatenate([none, *(track.end_ns for track in spans)])
    if range_ns is not None:
        starts, ends = np.maximum(starts, range_ns[0]), np.minimum(ends, range_ns[1])
    kept = ends > starts
    return union(starts[kept], ends[kept])


def _key(place: Place) -> tuple[str, str]:
    if place.file:
        return "line", f"{place.file}:{place.line}"
    return ("operation", place.operation) if place.operation else ("layer", place.module)


def _by_name(rows: pa.Table) -> list[tuple[str, tuple[Ints, Ints]]]:
    """Stretches by name, each joined where they overlap."""
    names = rows["name"].combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy()
    start, end = (rows[column].to_numpy().astype(np.int64) for column in ("start_ns", "end_ns"))
    found = []
    for code, name in enumerate(names.dictionary.to_pylist()):
        chosen = (codes == code) & (end > start)
        if chosen.any():
            found.append((name, union(start[chosen], end[chosen])))
    return found


def _pieces(bands: Sequence[tuple[int, Band]]) -> Pieces:
    """Stretches of some bands with the place of each, by start; where they overlap, the later one is cut."""
    start = np.concatenate([band.stretches[0] for _, band in bands]).astype(np.float64)
    end = np.concatenate([band.stretches[1] for _, band in bands]).astype(np.float64)
    key = np.concatenate([np.full(len(band.stretches[0]), row, np.int64) for row, band in bands])
    order = np.argsort(start, kind="stable")
    start, end, key = start[order], end[order], key[order]
    start[1:] = np.maximum(start[1:], np.maximum.accumulate(end)[:-1]) if len(start) > 1 else start[1:]
    kept = end > start
    return Pieces(start[kept], end[kept], key[kept])
