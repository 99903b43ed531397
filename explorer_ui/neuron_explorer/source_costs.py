"""What the lines of a source file cost on the device, and what one line became."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from neuron_explorer import results
from neuron_explorer.analyses import analysis
from neuron_tools.profile.reader import Profile

SOURCE_FILES, SOURCE_WORK, LINE_WORK = "source-files", "source-work", "line-work"
LISTED = 120  # HLO operations and instructions of a line that are listed

_FILES = """
WITH named AS (
    SELECT source_file AS file FROM FrameworkInstruction UNION SELECT source_file FROM Instruction
    UNION SELECT source_file FROM HostSpan UNION SELECT source_file FROM TraceSpan
    UNION SELECT path FROM SourceFile
)
SELECT file FROM named WHERE file IS NOT NULL AND file <> '' ORDER BY file
"""
_INSTRUCTIONS = """
SELECT source_line AS line, lower(engine) AS engine, count(*) AS instructions,
    CAST(sum(duration_ns) AS BIGINT) AS busy_ns
FROM Instruction WHERE source_file = ? AND source_line > 0 GROUP BY ALL
"""
_TRANSFERS = """
SELECT source_line AS line, CAST(sum(transfer_bytes) AS BIGINT) AS bytes,
    CAST(sum(duration_ns) AS BIGINT) AS busy_ns
FROM DmaPacketAggregated WHERE source_file = ? AND source_line > 0 GROUP BY ALL
"""
_SPANS = """
SELECT source_line AS line, CAST(sum(duration_ns) AS BIGINT) AS host_ns FROM (
    SELECT source_line, duration_ns FROM HostSpan WHERE source_file = $file AND kind <> 'module'
    UNION ALL SELECT source_line, duration_ns FROM TraceSpan WHERE source_file = $file
) WHERE source_line > 0 GROUP BY ALL
"""
_LINE_HLO = """
SELECT hlo_name, any_value(hlo_opcode) AS opcode, any_value(shape) AS shape, count(*) AS calls,
    CAST(sum(end_ts - start_ts) AS BIGINT) AS span_ns
FROM HloInstruction WHERE source_file = ? AND source_line = ?
GROUP BY hlo_name ORDER BY span_ns DESC, hlo_name LIMIT ?
"""
_LINE_FIRST = """
SELECT min(start_ts) AS start_ns, arg_min(raw_framework_id, start_ts) AS operation,
    arg_min(coalesce(process_idx, 0), start_ts) AS process
FROM Instruction WHERE source_file = ? AND source_line = ?
"""
_LINE_INSTRUCTIONS = """
SELECT engine, opcode, operands, coalesce(hlo_name, '') AS hlo, duration_ns, start_ts AS start_ns
FROM Instruction
WHERE source_file = ? AND source_line = ? AND start_ts >= ? AND raw_framework_id IS NOT DISTINCT FROM ?
    AND coalesce(process_idx, 0) = ?
ORDER BY start_ts LIMIT ?
"""


@dataclass
class LineWork:
    """What one line made the device do; times are sums over engines that work at once."""

    instructions: int = 0
    transfer_bytes: int = 0
    host_ns: int = 0
    engine_ns: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def busy_ns(self) -> int:
        """Busy time of all engines."""
        return sum(self.engine_ns.values())


@dataclass(frozen=True, slots=True)
class LineDetail:
    """What one line became: its HLO operations, and the instructions of its first execution."""

    hlo: tuple[Mapping[str, Any], ...]
    instructions: tuple[Mapping[str, Any], ...]


@analysis(SOURCE_FILES, "Listing source files")
def source_files(profile: Profile) -> tuple[str, ...]:
    """Files that rows of the profile name, in alphabetical order."""
    return tuple(row["file"] for row in results.rows(profile, _FILES))


@analysis(SOURCE_WORK, "Summing up instructions by line")
def source_work(profile: Profile, file: str) -> dict[int, LineWork]:
    """Work by line of a file."""
    work: defaultdict[int, LineWork] = defaultdict(LineWork)
    for row in results.rows(profile, _INSTRUCTIONS, [file]):
        line = work[row["line"]]
        line.instructions += row["instructions"]
        line.engine_ns[row["engine"] or "other"] += row["busy_ns"] or 0
    for row in results.rows(profile, _TRANSFERS, [file]):
        work[row["line"]].transfer_bytes = row["bytes"] or 0
        work[row["line"]].engine_ns["dma"] += row["busy_ns"] or 0
    for row in results.rows(profile, _SPANS, {"file": file}):
        work[row["line"]].host_ns = row["host_ns"] or 0
    return dict(work)


@analysis(LINE_WORK, "Reading what the line became")
def line_work(profile: Profile, file: str, line: str) -> LineDetail:
    """HLO operations of a line by falling time, and its instructions in order of time."""
    place = [file, int(line)]
    hlo = results.rows(profile, _LINE_HLO, [*place, LISTED])
    first = results.rows(profile, _LINE_FIRST, place)[0]
    if first["start_ns"] is None:
        return LineDetail(tuple(hlo), ())
    where = [*place, first["start_ns"], first["operation"], first["process"], LISTED]
    return LineDetail(tuple(hlo), tuple(results.rows(profile, _LINE_INSTRUCTIONS, where)))


def source_text(profile: Profile, file: str) -> list[str]:
    """The lines of a file as the profile keeps it; empty where it does not.

    A file is never read from the disk: its path comes from the profile, which may come from anyone.
    """
    found = results.rows(
        profile, "SELECT text FROM SourceFile WHERE path = ? AND text IS NOT NULL LIMIT 1", [file]
    )
    return found[0]["text"].splitlines() if found else []
