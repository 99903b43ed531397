"""SQL for the rows of the timeline: one query per source and window of time."""

from __future__ import annotations

from neuron_tools.profile.export.source import Tables
from neuron_tools.profile.export.timeline_sources import CounterSource, SpanSource

FLOW_TABLES = ("Instruction", "DmaPacketAggregated", "TraceSpan")
"""Tables between whose rows dependencies are drawn."""


FLOW_NUMBER = "hash(f.in_table, f.in_id, f.out_table, f.out_id)"
FLOW_JOINS = " LEFT JOIN outgoing o ON o.id = t.id LEFT JOIN incoming i ON i.id = t.id"


def span_query(source: SpanSource, tables: Tables, window: str, *, flows: bool) -> str:
    """SQL for a source's rows by process, place, track and time.

    Args:
        source: Table and columns.
        tables: Which of them the profile has.
        window: SQL condition on the start, as `Tables.windows` gives them.
        flows: Whether to add the dependencies.

    Returns:
        A query with the columns process_idx, place_idx, track, start_ns, end_ns, name, layer, is_backward,
        source_file, source_line, category, arguments_json, flow_out, flow_in, and arg_LABEL per argument.
    """
    table = source.table
    with_flows = flows and has_flows(tables) and table in FLOW_TABLES and tables.has(table, "id")
    out_list, in_list = ("o.flows", "i.flows") if with_flows else ("NULL", "NULL")
    ending = "end_ns DESC" if source.nested else "end_ns"
    chosen = (
        f"WHERE {source.start} IS NOT NULL AND {source.end} IS NOT NULL AND {source.condition} AND {window}"
    )
    return (
        (_flow_ends(table, chosen) if with_flows else "")
        + f"SELECT CAST({tables.column_or(table, 'process_idx', '0')} AS BIGINT) AS process_idx,"
        f" CAST({tables.column_or(table, source.index, '0')} AS BIGINT) AS place_idx,"
        f" {source.track.sql(tables, table)} AS track,"
        f" CAST({source.start} AS BIGINT) AS start_ns,"
        f" CAST(greatest({source.start}, {source.end}) AS BIGINT) AS end_ns,"
        f" {source.name.sql(tables, table)} AS name,"
        f" CAST({tables.column_or(table, 'layer', 'NULL')} AS VARCHAR) AS layer,"
        f" CAST({tables.column_or(table, 'is_backward', 'FALSE')} AS BOOLEAN) AS is_backward,"
        f" CAST({tables.column_or(table, 'source_file', 'NULL')} AS VARCHAR) AS source_file,"
        f" CAST({tables.column_or(table, 'source_line', 'NULL')} AS BIGINT) AS source_line,"
        f" CAST({tables.column_or(table, 'category', 'NULL')} AS VARCHAR) AS category,"
        f" CAST({tables.column_or(table, 'arguments_json', 'NULL')} AS VARCHAR) AS arguments_json,"
        f" CAST({out_list} AS UBIGINT[]) AS flow_out, CAST({in_list} AS UBIGINT[]) AS flow_in"
        + "".join(_arguments(source, tables))
        + f' FROM "{table}" t{FLOW_JOINS if with_flows else ""} {chosen}'
        + f" ORDER BY 1, 2, 3, 4, {ending}"
    )


def counter_query(source: CounterSource, tables: Tables, window: str) -> str:
    """SQL for a counter's samples: process_idx, place_idx, time_ns, value; by process, place and time."""
    return (
        f"SELECT CAST({tables.column_or(source.table, 'process_idx', '0')} AS BIGINT) AS process_idx,"
        f" CAST({tables.column_or(source.table, source.index, '0')} AS BIGINT) AS place_idx,"
        f' CAST(t."timestamp" AS BIGINT) AS time_ns, CAST(t."{source.column}" AS DOUBLE) AS value'
        f' FROM "{source.table}" t WHERE t."timestamp" IS NOT NULL AND t."{source.column}" IS NOT NULL'
        f" AND {window} ORDER BY 1, 2, 3"
    )


def has_flows(tables: Tables) -> bool:
    """Whether the profile has dependencies."""
    return tables.has("Flow", "in_id") and tables.count("Flow") > 0


def _arguments(source: SpanSource, tables: Tables) -> list[str]:
    columns = tables.columns(source.table)
    return [
        f', {_argument(column, columns[column])} AS "arg_{column}"'
        for column in source.arguments
        if column in columns
    ]


def _argument(column: str, data_type: str) -> str:
    """An argument's value: text, BIGINT or DOUBLE; null where it says nothing."""
    if data_type in ("FLOAT", "DOUBLE"):
        return f'nullif(CAST(t."{column}" AS DOUBLE), 0)'
    if data_type.endswith("INT") or data_type in ("INTEGER", "BOOLEAN"):
        kept = f'CAST(t."{column}" AS BIGINT)'
        return kept if column == "id" else f"nullif({kept}, 0)"
    return f"nullif(CAST(t.\"{column}\" AS VARCHAR), '')"


def flow_query(table: str, tables: Tables, end: str) -> str | None:
    """SQL for one end of all flows of a table: `id` of the row, ascending, and `number`; None without any.

    Args:
        end: "in" for where flows start, "out" for where they end.
    """
    if table not in FLOW_TABLES or not has_flows(tables) or not tables.has(table, "id"):
        return None
    return (
        f"SELECT DISTINCT CAST(f.{end}_id AS BIGINT) AS id, {FLOW_NUMBER} AS number FROM Flow f"
        f" WHERE f.{end}_table = '{table}' AND {_drawn_flows()} ORDER BY 1, 2"
    )


def _flow_ends(table: str, chosen: str) -> str:
    """Common table expressions: flow numbers by the row that they start and end at, of the chosen rows.

    A number is a hash of the edge: the same whichever end is read, in whatever order and window.
    """
    number = f"list_sort(list(DISTINCT {FLOW_NUMBER})) AS flows FROM Flow f"
    drawn = _drawn_flows()
    ends = (
        f"{name} AS (SELECT f.{end}_id AS id, {number} SEMI JOIN chosen c ON c.id = f.{end}_id"
        f" WHERE f.{end}_table = '{table}' AND {drawn} GROUP BY f.{end}_id)"
        for name, end in (("outgoing", "in"), ("incoming", "out"))
    )
    return f'WITH chosen AS (SELECT t.id FROM "{table}" t {chosen}), {", ".join(ends)} '


def _drawn_flows() -> str:
    """SQL that chooses the edges between different rows of the tables between which edges are drawn."""
    listed = ", ".join(f"'{name}'" for name in FLOW_TABLES)
    return f"f.in_table IN ({listed}) AND f.out_table IN ({listed}) AND f.in_id <> f.out_id"
