"""What the lines of a source file cost on the device, and what one line became."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from neuron_explorer import results
from neuron_explorer.analyses import analysis
from neuron_profile.analysis.line_times import LineTimes
from neuron_tools.frozen import frozen
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
# In a file of the user's, a row of a library belongs to the user's line that called it; elsewhere to its own.
_PLACED = """
WITH own_files AS (
    SELECT DISTINCT source_file AS file FROM Frontier WHERE is_own
), callers AS (
    SELECT operation.id, own.source_file AS file, own.source_line AS line
    FROM FrameworkInstruction operation
    JOIN Frontier own ON own.stack_frame_id = split_part(operation.stack_frame_ids, ',', 1)
    WHERE own.is_own AND own.source_file = $file
), placed AS (
    SELECT row.*, coalesce(callers.file, row.source_file) AS file,
        CASE WHEN callers.file IS NULL THEN row.source_line ELSE callers.line END AS line
    FROM {table} row LEFT JOIN callers ON callers.id = row.{operation}
        AND row.source_file NOT IN (SELECT file FROM own_files)
)
"""


def _placed(table: str, operation: str = "raw_framework_id") -> str:
    return _PLACED.format(table=table, operation=operation)


_INSTRUCTIONS = f"""
{_placed("Instruction")}
SELECT line, lower(engine) AS engine, count(*) AS instructions,
    CAST(sum(duration_ns) AS BIGINT) AS busy_ns
FROM placed WHERE file = $file AND line > 0 GROUP BY ALL
"""
_TRANSFERS = f"""
{_placed("DmaPacketAggregated")}
SELECT line, CAST(sum(transfer_bytes) AS BIGINT) AS bytes, CAST(sum(duration_ns) AS BIGINT) AS busy_ns
FROM placed WHERE file = $file AND line > 0 GROUP BY ALL
"""
_SPANS = """
SELECT line, CAST(sum(duration_ns) AS BIGINT) AS host_ns FROM (
    SELECT coalesce(own.source_line, span.source_line) AS line, span.duration_ns
    FROM HostSpan span LEFT JOIN Frontier own
        ON own.stack_frame_id = span.stack_frame_ids AND own.is_own AND own.source_file = $file
    WHERE span.kind <> 'module' AND (span.source_file = $file OR own.source_file = $file)
    UNION ALL SELECT source_line, duration_ns FROM TraceSpan WHERE source_file = $file
) WHERE line > 0 GROUP BY ALL
"""
_LINE_HLO = f"""
{_placed("HloInstruction")}
SELECT hlo_name, any_value(hlo_opcode) AS opcode, any_value(shape) AS shape, count(*) AS calls,
    CAST(sum(end_ts - start_ts) AS BIGINT) AS span_ns
FROM placed WHERE file = $file AND line = $line
GROUP BY hlo_name ORDER BY span_ns DESC, hlo_name LIMIT $listed
"""
_LINE_FIRST = f"""
{_placed("Instruction")}
SELECT min(start_ts) AS start_ns, arg_min(raw_framework_id, start_ts) AS operation,
    arg_min(coalesce(process_idx, 0), start_ts) AS process
FROM placed WHERE file = $file AND line = $line
"""
_LINE_INSTRUCTIONS = f"""
{_placed("Instruction")}
SELECT engine, opcode, operands, coalesce(hlo_name, '') AS hlo, duration_ns, start_ts AS start_ns
FROM placed
WHERE file = $file AND line = $line AND start_ts >= $start
    AND raw_framework_id IS NOT DISTINCT FROM $operation AND coalesce(process_idx, 0) = $process
ORDER BY start_ts LIMIT $listed
"""
_LINE_LIBRARIES = f"""
{_placed("FrameworkInstruction", "id")}
SELECT source_file AS file, source_line AS line, count(*) AS calls,
    CAST(sum(end_ts - start_ts) AS BIGINT) AS span_ns
FROM placed WHERE file = $file AND line = $line AND source_file <> $file AND source_line > 0
GROUP BY ALL ORDER BY span_ns DESC, file, line LIMIT $listed
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


@frozen
class LineDetail:
    """What one line became: its HLO operations, and the instructions of its first execution.

    Attributes:
        libraries: Lines of libraries that it had operations run at, by falling time; none of a library's own.
    """

    hlo: tuple[Mapping[str, Any], ...]
    instructions: tuple[Mapping[str, Any], ...]
    libraries: tuple[Mapping[str, Any], ...] = ()


@analysis(SOURCE_FILES, "Listing source files")
def source_files(profile: Profile) -> tuple[str, ...]:
    """Files that rows of the profile name, in alphabetical order."""
    return tuple(row["file"] for row in results.rows(profile, _FILES))


@analysis(SOURCE_WORK, "Summing up instructions by line")
def source_work(profile: Profile, file: str) -> dict[int, LineWork]:
    """Work by line of a file; in one of the user's with what libraries do for a line."""
    work: defaultdict[int, LineWork] = defaultdict(LineWork)
    for row in results.rows(profile, _INSTRUCTIONS, {"file": file}):
        line = work[row["line"]]
        line.instructions += row["instructions"]
        line.engine_ns[row["engine"] or "other"] += row["busy_ns"] or 0
    for row in results.rows(profile, _TRANSFERS, {"file": file}):
        work[row["line"]].transfer_bytes = row["bytes"] or 0
        work[row["line"]].engine_ns["dma"] += row["busy_ns"] or 0
    for row in results.rows(profile, _SPANS, {"file": file}):
        work[row["line"]].host_ns = row["host_ns"] or 0
    return dict(work)


def opening_line(times: LineTimes, work: Mapping[int, LineWork]) -> int:
    """The line of a file to begin with; 0 where none has a cost.

    It is the one that is charged most, unless nothing of it ran but what it launches: then the costliest line
    of a kernel in the file.
    """
    costliest = max(times.charged, key=lambda line: times.charged[line], default=0)
    launches = costliest not in work or not work[costliest].instructions
    if not launches or not times.in_kernels:
        return costliest
    return max(times.in_kernels, key=lambda line: times.in_kernels[line])


@analysis(LINE_WORK, "Reading what the line became")
def line_work(profile: Profile, file: str, line: str) -> LineDetail:
    """HLO operations of a line by falling time, and its instructions in order of time."""
    place = {"file": file, "line": int(line)}
    listed = {**place, "listed": LISTED}
    hlo = tuple(results.rows(profile, _LINE_HLO, listed))
    libraries = tuple(results.rows(profile, _LINE_LIBRARIES, listed))
    first = results.rows(profile, _LINE_FIRST, place)[0]
    if first["start_ns"] is None:
        return LineDetail(hlo, (), libraries)
    where = {"start": first["start_ns"], "operation": first["operation"], "process": first["process"]}
    rows = results.rows(profile, _LINE_INSTRUCTIONS, {**listed, **where})
    return LineDetail(hlo, tuple(rows), libraries)


def source_text(profile: Profile, file: str) -> list[str]:
    """The lines of a file as the profile keeps it; empty where it does not.

    A file is never read from the disk: its path comes from the profile, which may come from anyone.
    """
    found = results.rows(
        profile, "SELECT text FROM SourceFile WHERE path = ? AND text IS NOT NULL LIMIT 1", [file]
    )
    return found[0]["text"].splitlines() if found else []
