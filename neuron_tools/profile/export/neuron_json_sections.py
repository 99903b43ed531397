"""How the published tables are spelled in AWS's profile JSON: one section per list, key -> SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from neuron_tools.frozen import frozen
from neuron_tools.profile.export.source import Tables


@frozen
class Section:
    """Rows of one list of the JSON; several sections may share a list.

    Attributes:
        key: Its name in the file.
        table: Published table that it is made of.
        fields: JSON key -> SQL with {column} for the table's columns; a field whose column is missing is
            left out. An empty mapping takes all columns as they are.
        raw: Keys whose SQL yields JSON text.
        time: SQL for the time that orders the rows `t`; "" = as stored.
        unless: Table in whose presence this section is not used.
    """

    key: str
    table: str
    fields: Mapping[str, str]
    raw: tuple[str, ...] = ()
    time: str = ""
    unless: str = ""

    def is_in(self, tables: Tables) -> bool:
        """Whether the profile has rows for it."""
        return tables.count(self.table) > 0 and not (self.unless and tables.count(self.unless))


def _same(*columns: str) -> dict[str, str]:
    return {column: f"{{{column}}}" for column in columns}


def _text(column: str) -> str:
    """A text that is empty rather than missing."""
    return f"coalesce({{{column}}}, '')"


_TIME, _START = 't."timestamp"', 't."start_ts"'
_SUBGRAPH = "'sg' || lpad(CAST(coalesce({pcore_idx}, 0) AS VARCHAR), 2, '0')"
_WHERE = {"subgraph": _SUBGRAPH, "process_idx": "{process_idx}"}
_PREDECESSORS = (
    "(SELECT '[' || string_agg('{{\"id\":' || f.in_id || ',\"type\":\"FLOW_DEPENDENCE\"}}', ','"
    " ORDER BY f.in_id) || ']' FROM Flow f WHERE f.out_id = {id} AND f.out_table = 'Instruction')"
)

INSTRUCTION = Section(
    "instruction",
    "Instruction",
    {
        "timestamp": "{start_ts}",
        "duration": "{end_ts} - {start_ts}",
        "label": "coalesce({timeline_track}, {engine})",
        "subgroup": "{engine}",
        **_WHERE,
        "fully_qualified_subgraph": "'/' || " + _SUBGRAPH,
        **_same("id", "opcode", "operands", "pc", "compiler_pc", "compiler_opcode", "compiler_operands"),
        "layer": _text("layer"),
        "hlo_name": _text("hlo_name"),
        "hlo_attrs": _text("hlo_attrs"),
        "framework_name": _text("framework_name"),
        "instruction_type": _text("tensor_instruction_type"),
        "activation_fn": _text("scalar_activation_fn"),
        "evt_wait_time": "{evt_wait_time_ns}",
        "dma_wait_time": "{dma_wait_time_ns}",
        "bir_id": _text("bir_id"),
        "penguin_id": _text("penguin_id"),
        "bir_instruction_name": _text("bir_instruction_name"),
        **_same("raw_bir_id", "raw_penguin_id", "crc_in", "crc_out", "performance_mode", "source_file"),
        **_same("source_line", "nki_source_location", "bir_debug_info_source_location", "is_backward"),
        **_same("hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes"),
        **_same("psum_read_bytes", "psum_write_bytes", "psum_read_sbuf_write_bytes"),
        **_same("spill_save_bytes", "spill_reload_bytes", "input_queue_bytes", "output_queue_bytes"),
        **_same("weight_queue_bytes"),
        "is_psum_read_sbuf_write": "{psum_read_sbuf_write_bytes} > 0",
        "elements": "{tensor_elements}",
        "flops": "{raw_flops}",
        "predecessors": _PREDECESSORS,
    },
    raw=("predecessors",),
    time=_START,
)

_TRANSFER = {
    "timestamp": "{start_ts}",
    "duration": "{end_ts} - {start_ts}",
    "subgroup": "coalesce({queue_name}, 'Q' || {queue_idx})",
    **_WHERE,
    "id": "{id}",
    "transfer_size": "{transfer_bytes}",
    "read_size": "{read_bytes}",
    "write_size": "{write_bytes}",
    "transfer_rate": "{throughput}",
    "queue_type": "{queue_type}",
    "dma_queue": "CAST({queue_idx} AS VARCHAR)",
    "variable": "coalesce({variable}, 'unknown')",
    "is_cc_dma": "'no'",
    "duplicate": "'no'",
}

DMA_PACKETS = Section(
    "dma",
    "DmaPacket",
    {
        **_TRANSFER,
        "dma_engine": "CAST({engine_idx} AS VARCHAR)",
        **_same("packet_idx", "packet_aggregation_id", "crc"),
        "aggregated": "'no'",
        "semaphore_id": "'-1'",
        "source": "[['unknown']]",
        "dest": "['unknown']",
        "op": "''",
    },
    time=_START,
)

DMA_TRANSFERS = Section(
    "dma",
    "DmaPacketAggregated",
    {
        **_TRANSFER,
        "aggregated": "'yes'",
        "semaphore_id": "coalesce({semaphore_id}, '-1')",
        "source": "[[coalesce({source}, 'unknown')]]",
        "dest": "[coalesce({dest}, 'unknown')]",
        **_same("op", "block_id", "read_shape", "write_shape", "is_transpose_mode", "hlo_name", "layer"),
    },
    time=_START,
    unless="DmaPacket",
)

DEVICE_SECTIONS = (
    Section("summary", "Summary", {}),
    INSTRUCTION,
    DMA_PACKETS,
    DMA_TRANSFERS,
    Section(
        "active_time",
        "ActiveTime",
        {**_WHERE, "engine": "lower({engine})", **_same("start_ts", "end_ts", "duration_ns", "pcore_idx")},
        time=_START,
    ),
    Section(
        "semaphore_update",
        "SemaphoreUpdate",
        {**_WHERE, **_same("timestamp", "id", "value", "update_source", "update_operation_type")},
        time=_TIME,
    ),
    Section(
        "instruction_usage",
        "SbufUsage",
        {
            **_WHERE,
            "timestamp": "{timestamp}",
            "type": "'sb'",
            "usage_avg": "{avg_util_percent}",
            **{f"partition_{part}_usage": f"{{partition_{part}_util_percent}}" for part in (0, 32, 64, 96)},
        },
        time=_TIME,
    ),
    Section(
        "instruction_usage",
        "PsumUsage",
        {
            **_WHERE,
            "timestamp": "{timestamp}",
            "type": "'psum'",
            "usage_avg": "{avg_util_percent}",
            **{f"bank_{bank}_usage": f"{{bank_{bank}_util_percent}}" for bank in range(8)},
        },
        time=_TIME,
    ),
    Section(
        "dma_throughput",
        "DmaUsage",
        {
            **_WHERE,
            "timestamp": "{timestamp}",
            "transfer_rate": "{current_throughput}",
            "total_transfer_bytes": "{total_transfer_bytes}",
            "hbm_transfer_rate": "0",
            "hbm_total_transfer_bytes": "0",
            "uses_hbm": "'false'",
        },
        time=_TIME,
    ),
    Section(
        "dma_throughput",
        "HbmUsage",
        {
            **_WHERE,
            "timestamp": "{timestamp}",
            "hbm_transfer_rate": "{current_throughput}",
            "hbm_total_transfer_bytes": "{total_transfer_bytes}",
            "uses_hbm": "'true'",
        },
        time=_TIME,
    ),
    Section("pending_dma", "PendingDma", {**_WHERE, **_same("timestamp", "value")}, time=_TIME),
    Section("ham", "Throttle", {**_WHERE, **_same("timestamp", "duration", "k", "n", "type")}, time=_TIME),
    Section("cc_ops", "CcOp", {}),
    Section(
        "dma_queues_info",
        "DmaQueuesInfo",
        {
            **_WHERE,
            "q_name": "{name}",
            "q_type": "{type}",
            "q_idx": "{idx}",
            "q_eng_idx": "{engine_idx}",
            "q_axi_port": "{axi_port}",
            "q_dram_channel": "{dram_channel}",
        },
    ),
    Section(
        "neff_node",
        "TensorInfo",
        {
            "sg_name": _SUBGRAPH,
            **_same("variable_name", "type", "format", "shape"),
            "size": "CAST({size} AS VARCHAR)",
            "node": "CAST({node} AS VARCHAR)",
        },
    ),
    Section(
        "nc_mem_usage",
        "HbmUsageSummaryByType",
        {
            "usage_type": "{usage_type}",
            "amount_bytes": "{usage_bytes}",
            "nd": "{neuron_device_idx}",
            "nc": "{neuroncore_idx}",
        },
    ),
    Section(
        "metadata",
        "Metadata",
        {
            "process_idx": "{process_idx}",
            "pe_clock_freq": "{tensor_engine_clock_freq}",
            "pe_clock_others": "{neuroncore_clock_freq}",
            "pe_num_rows": "{tensor_engine_num_rows}",
            "pe_num_cols": "{tensor_engine_num_cols}",
            **_same("hbm_ddr_bandwidth", "dma_ddr_bandwidth", "first_hw_timestamp", "last_hw_timestamp"),
            **_same("first_ts", "last_ts", "num_physical_cores", "vnc_enabled", "ntff_version"),
            **_same("ticks_per_nanosec", "is_simulation", "instance_type", "profile_name"),
            **_same("profile_schema_version", "compiler_version", "runtime_version"),
        },
    ),
    Section("warnings", "Warning", _same("message", "category")),
    # Not of AWS's tool: what instructions depend on may be a DMA transfer, which `predecessors` do not tell.
    Section("flow", "Flow", _same("in_id", "out_id", "in_table", "out_table", "process_idx")),
)

_SYSTEM_EVENT = {
    **_same("id", "name", "instance_id"),
    "timestamp": "{start_ts}",
    "duration": "{end_ts} - {start_ts}",
    "group": "CASE WHEN {nc_idx} IS NULL THEN 'framework-' || {thread_id}"
    " ELSE 'nrt-nc-' || lpad(CAST({nc_idx} AS VARCHAR), 3, '0') END",
    "lnc_idx": "CAST({nc_idx} AS VARCHAR)",
    "nc_idx": "{nc_idx}",
    "process_id": "CAST({process_id} AS VARCHAR)",
    "thread_id": "{thread_id}",
    "trace_event_source": "{trace_event_source}",
    "attributes": "{extra_attributes_json}",
}

_FRAMEWORK_EVENT = {
    "name": "{name}",
    "timestamp": "{start_ts}",
    "duration": "{end_ts} - {start_ts}",
    "group": "'framework-' || {thread_idx}",
    "thread_id": "{thread_idx}",
    "process_idx": "{process_idx}",
    "kind": "{kind}",
    "type": "99999",
}

SYSTEM_SECTIONS = (
    Section("trace_events", "SystemProfileEvents", _SYSTEM_EVENT, time=_START),
    Section("trace_events", "HostSpan", _FRAMEWORK_EVENT, time=_START),
    Section(
        "mem_usage",
        "HostMemUsage",
        {
            "timestamp": "{timestamp}",
            "duration": "1",
            "instance_id": "{instance_id}",
            "usage": "{used_bytes}",
            "percent_usage": "100 * {used_percent}",
        },
        time=_TIME,
    ),
    Section(
        "cpu_util",
        "CpuUsage",
        {
            "timestamp": "{timestamp}",
            "duration": "1",
            "instance_id": "{instance_id}",
            "cpu_id": "{cpu_id}",
            "util": "100 * {util_percent}",
        },
        time=_TIME,
    ),
    Section("device_mem_usage", "SystemProfileHbmUsage", {}, time=_TIME),
)


def section_query(section: Section, tables: Tables, window: str) -> str:
    """SQL for a section's rows in a window of time, one column per JSON key."""
    columns = tables.columns(section.table)
    if section.fields:
        filled = {key: _filled(sql, columns) for key, sql in section.fields.items()}
        if "predecessors" in filled and not tables.has("Flow", "out_id"):
            filled["predecessors"] = None
        selected = ", ".join(f'{sql} AS "{key}"' for key, sql in filled.items() if sql is not None)
    else:
        selected = "*"
    order = f" ORDER BY {section.time}" if section.time else ""
    return f'SELECT {selected} FROM "{section.table}" t WHERE {window}{order}'


def _filled(sql: str, columns: Mapping[str, str]) -> str | None:
    """Puts columns into {...}; None where one is missing. {{ and }} stand for themselves."""
    needed = re.findall(r"(?<!\{)\{(\w+)\}", sql)
    if any(column not in columns for column in needed):
        return None
    return sql.format(**{column: f't."{column}"' for column in needed})
