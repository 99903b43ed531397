"""What each line of a source file cost: sums over the rows that name it."""

from __future__ import annotations

QUERY = """
WITH work AS (
    SELECT source_line AS line, count(*) AS instruction_count, sum(duration_ns) AS instruction_time_ns,
        sum(evt_wait_time_ns) AS wait_time_ns, 0 AS dma_transfer_count, 0 AS dma_time_ns,
        0 AS host_span_count, 0 AS host_time_ns
    FROM Instruction WHERE source_file = $file GROUP BY source_line
    UNION ALL
    SELECT source_line, 0, 0, 0, count(*), sum(duration_ns), 0, 0
    FROM DmaPacketAggregated WHERE source_file = $file GROUP BY source_line
    UNION ALL
    SELECT source_line, 0, 0, 0, 0, 0, count(*), sum(duration_ns)
    FROM HostSpan WHERE source_file = $file GROUP BY source_line
    UNION ALL
    SELECT source_line, 0, 0, 0, 0, 0, count(*), sum(duration_ns)
    FROM TraceSpan WHERE source_file = $file GROUP BY source_line
), sums AS (
    SELECT line,
        CAST(sum(instruction_count) AS BIGINT) AS instruction_count,
        CAST(coalesce(sum(instruction_time_ns), 0) AS BIGINT) AS instruction_time_ns,
        CAST(coalesce(sum(wait_time_ns), 0) AS BIGINT) AS wait_time_ns,
        CAST(sum(dma_transfer_count) AS BIGINT) AS dma_transfer_count,
        CAST(coalesce(sum(dma_time_ns), 0) AS BIGINT) AS dma_time_ns,
        CAST(sum(host_span_count) AS BIGINT) AS host_span_count,
        CAST(coalesce(sum(host_time_ns), 0) AS BIGINT) AS host_time_ns
    FROM work WHERE line > 0 GROUP BY line
), texts AS (
    SELECT string_split(replace(text, chr(13), ''), chr(10)) AS lines
    FROM SourceFile WHERE path = $file AND text IS NOT NULL LIMIT 1
)
SELECT sums.line, (SELECT lines[sums.line] FROM texts) AS text, sums.* EXCLUDE (line)
FROM sums ORDER BY sums.line
"""
"""One row per line of `$file` with work: its number, its text if the profile keeps it, counts and times."""
