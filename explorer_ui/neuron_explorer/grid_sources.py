"""The tables that grids show: operations and instructions, one by one and grouped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from neuron_explorer.analyses import analysis
from neuron_explorer.grid_rows import (
    FIRST_CORES,
    Column,
    Kind,
    Request,
    Source,
    count_rows,
    read_keys,
    read_request,
    rows_of_keys,
)
from neuron_tools.profile.reader import Profile

GROUPS, COUNT, KEYS = "grid-groups", "grid-count", "grid-keys"
KEYS_AT_ONCE = 1_000

_TITLES: dict[str, tuple[str, Kind]] = {
    "time_ns": ("Time", "time"), "start_ts": ("Start", "time"), "duration_ns": ("Time", "time"),
    "mean_ns": ("Mean", "time"), "longest_ns": ("Longest", "time"),
    "longest_span_ns": ("Longest span", "time"), "share": ("Share", "share"),
    "dma_wait_ns": ("Waited for DMA", "time"), "wait_ns": ("Waited", "time"),
    "evt_wait_time_ns": ("Waited", "time"),
    "calls": ("Calls", "count"), "count": ("Count", "count"),
    "hbm_bytes": ("HBM", "bytes"), "flops": ("Model FLOPs", "number"),
    "flops_per_byte": ("FLOPs per byte", "number"),
    "engine": ("Engine", "text"), "opcode": ("Instruction", "text"), "operands": ("Operands", "text"),
    "name": ("Name", "text"), "category": ("Kind", "text"), "hlo_name": ("HLO", "text"),
    "framework_name": ("Operation", "text"), "layer": ("Module", "text"), "is_backward": ("Backward", "text"),
    "source_file": ("File", "text"), "source_line": ("Line", "count"), "process_idx": ("Process", "count"),
    "id": ("Id", "count"),
}  # fmt: skip


def _columns(widths: str) -> tuple[Column, ...]:
    """Columns in order: "time_ns:110 share:100", their names and widths in pixels; the id is hidden."""
    pairs = (column.split(":") for column in widths.split())
    return tuple(Column(name, *_TITLES[name], int(width), is_hidden=name == "id") for name, width in pairs)


_OPERATION_COLUMNS = _columns(
    "time_ns:100 share:100 calls:90 mean_ns:100 longest_span_ns:160 hbm_bytes:100 flops:110 "
    "flops_per_byte:120"
)
# HLO operations of one graph overlap: a moment in which several of a group run counts once.
_GROUPED_OPERATIONS = """
SELECT *, time_ns / sum(time_ns) OVER () AS share, time_ns / nullif(calls, 0) AS mean_ns,
    CASE WHEN hbm_bytes > 0 THEN flops / hbm_bytes END AS flops_per_byte
FROM (
    SELECT name, count(*) FILTER ({first_cores}) AS calls, max(end_ts - start_ts) AS longest_span_ns,
        CAST(coalesce(sum(greatest(0, end_ts - greatest(start_ts, coalesce(covered_until, start_ts))))
            FILTER ({first_cores}), 0) AS DOUBLE) AS time_ns,
        CAST(sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0)) AS BIGINT) AS hbm_bytes,
        CAST(nullif(sum(model_flops), 0) AS DOUBLE) AS flops
    FROM (
        SELECT *, {key} AS name, max(end_ts) OVER (
            PARTITION BY {key}, process_idx, pcore_idx ORDER BY start_ts, end_ts
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_until
        FROM HloInstruction
    )
    GROUP BY name
)
"""
_LINE = "CASE WHEN source_file IS NULL THEN '' ELSE source_file || ':' || coalesce(source_line, 0) END"


def _grouped(name: str, title: str, heading: str, key: str) -> Source:
    columns = (Column("name", heading, "text", 320), *_OPERATION_COLUMNS)
    return Source(
        name,
        title,
        columns,
        _GROUPED_OPERATIONS.format(key=key, first_cores=FIRST_CORES),
        "time_ns",
        is_grouped=True,
    )


SOURCES = {
    source.name: source
    for source in (
        _grouped("operation", "Operation", "Operation", "coalesce(framework_name, '')"),
        _grouped("module", "Module", "Module", "coalesce(layer, '')"),
        _grouped("line", "Source line", "Source line", _LINE),
        _grouped("hlo", "HLO opcode", "HLO opcode", "coalesce(hlo_opcode, '')"),
        Source(
            "opcode",
            "Instruction",
            _columns(
                "engine:100 opcode:220 time_ns:110 share:100 count:110 mean_ns:100 longest_ns:100 "
                "dma_wait_ns:120 wait_ns:110"
            ),
            """
SELECT *, time_ns / sum(time_ns) OVER () AS share FROM (
    SELECT engine, opcode, CAST(sum(duration_ns) AS BIGINT) AS time_ns, count(*) AS count,
        CAST(avg(duration_ns) AS DOUBLE) AS mean_ns, max(duration_ns) AS longest_ns,
        CAST(sum(coalesce(dma_wait_time_ns, 0)) AS BIGINT) AS dma_wait_ns,
        CAST(sum(coalesce(evt_wait_time_ns, 0)) AS BIGINT) AS wait_ns
    FROM Instruction GROUP BY ALL
)
""",
            "time_ns",
            is_grouped=True,
        ),
        Source(
            "operations",
            "Operations",
            _columns(
                "framework_name:260 layer:260 is_backward:90 start_ts:110 duration_ns:100 "
                "hbm_bytes:100 source_file:260 source_line:80 process_idx:80 id:100"
            ),
            f"""
SELECT id, framework_name, layer, CASE WHEN is_backward THEN 'backward' ELSE '' END AS is_backward, start_ts,
    end_ts - start_ts AS duration_ns, coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0) AS hbm_bytes,
    source_file, source_line, process_idx
FROM FrameworkInstruction WHERE {FIRST_CORES}
""",
            "duration_ns",
        ),
        Source(
            "instructions",
            "Instructions",
            _columns(
                "engine:90 opcode:160 start_ts:110 duration_ns:100 evt_wait_time_ns:100 "
                "framework_name:180 layer:200 hlo_name:140 operands:320 source_file:220 source_line:80 "
                "process_idx:80 id:100"
            ),
            "SELECT * FROM Instruction",
            "duration_ns",
            key="id",
        ),
        Source(
            "spans",
            "Host spans",
            _columns(
                "name:320 category:120 start_ts:110 duration_ns:100 source_file:260 source_line:80 "
                "process_idx:80"
            ),
            """
SELECT name, kind AS category, start_ts, duration_ns, source_file, source_line, process_idx FROM HostSpan
UNION ALL SELECT name, category, start_ts, duration_ns, source_file, source_line, process_idx FROM TraceSpan
""",
            "duration_ns",
        ),
        Source(
            "names",
            "Host span",
            _columns("name:380 time_ns:110 calls:100 mean_ns:100 longest_ns:100"),
            """
SELECT name, CAST(sum(duration_ns) AS BIGINT) AS time_ns, count(*) AS calls,
    CAST(avg(duration_ns) AS DOUBLE) AS mean_ns, max(duration_ns) AS longest_ns
FROM (SELECT name, duration_ns FROM HostSpan UNION ALL SELECT name, duration_ns FROM TraceSpan) GROUP BY name
""",
            "time_ns",
            is_grouped=True,
        ),
    )
}
"""Sources by name."""


@analysis(GROUPS, "Grouping")
def groups(profile: Profile, source: str) -> pa.Table:
    """All rows of a grouped source."""
    return profile.query(SOURCES[source].query_of(profile))


@analysis(COUNT, "Counting rows")
def count(profile: Profile, source: str, filter_model: str) -> int:
    """How many rows of a source a filter leaves; `filter_model` is AG Grid's, as JSON."""
    asked = read_request(SOURCES[source], {"filterModel": json.loads(filter_model)})
    return count_rows(profile, SOURCES[source], asked)


@analysis(KEYS, "Sorting")
def keys(profile: Profile, source: str, asked: str) -> list[int]:
    """Keys of rows in an order; `asked` is AG Grid's request as JSON."""
    chosen = SOURCES[source]
    return read_keys(profile, chosen, read_request(chosen, json.loads(asked)))


def keyed_rows(
    profile: Profile, source: Source, request: Request, keys_of: Callable[[int, int], list[int]]
) -> list[dict[str, Any]]:
    """The rows of a request, whose keys are asked for a thousand at a time: the next blocks then know them.

    Args:
        keys_of: The keys of the rows from a place to another, in the request's order.
    """
    first = request.start // KEYS_AT_ONCE * KEYS_AT_ONCE
    last = max(first + KEYS_AT_ONCE, request.end)
    known = keys_of(first, last)
    return rows_of_keys(profile, source, known[request.start - first : request.end - first])
