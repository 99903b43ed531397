"""Which list of AWS's profile JSON becomes which table; key names are those of public captures."""

from __future__ import annotations

from neuron_tools.profile.importers.sections import Section


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_BYTES = _same(
    "hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes", "psum_read_bytes",
    "psum_write_bytes", "psum_read_sbuf_write_bytes", "spill_save_bytes", "spill_reload_bytes",
    "input_queue_bytes", "output_queue_bytes", "weight_queue_bytes",
)  # fmt: skip

_INSTRUCTION = Section(
    "Instruction",
    {
        "engine": "subgroup",
        "timeline_track": "label",
        "evt_wait_time_ns": "evt_wait_time",
        "dma_wait_time_ns": "dma_wait_time",
        "tensor_instruction_type": "instruction_type",
        "scalar_activation_fn": "activation_fn",
        "tensor_elements": "elements",
        "raw_flops": "flops",
        **_same(
            "id", "opcode", "operands", "pc", "compiler_pc", "compiler_opcode", "compiler_operands", "layer"
        ),
        **_same("hlo_name", "hlo_attrs", "framework_name", "bir_id", "penguin_id", "bir_instruction_name"),
        **_same("raw_bir_id", "raw_penguin_id", "crc_in", "crc_out", "performance_mode", "source_file"),
        **_same("source_line", "nki_source_location", "bir_debug_info_source_location", "is_backward"),
        **_BYTES,
    },
    is_span=True,
    further_keys=("predecessors",),
)

_TRANSFER = {
    "queue_type": "queue_type",
    "variable": "variable",
    "queue_name": "subgroup",
    "queue_idx": "dma_queue",
    "read_bytes": "read_size",
    "write_bytes": "write_size",
    "transfer_bytes": "transfer_size",
    "throughput": "transfer_rate",
    "id": "id",
}

_PACKET = Section(
    "DmaPacket",
    {**_TRANSFER, "engine_idx": "dma_engine", **_same("packet_idx", "packet_aggregation_id", "crc")},
    where=("aggregated", frozenset({"no", "false"})),
    is_span=True,
)

_AGGREGATED = Section(
    "DmaPacketAggregated",
    {
        **_TRANSFER,
        **_same("op", "semaphore_id", "block_id", "read_shape", "write_shape", "is_transpose_mode"),
        **_same("hlo_name", "layer"),
    },
    where=("aggregated", frozenset({"yes", "true"})),
    is_span=True,
)

_OF_100 = 0.01
_PROCESSOR_LOAD = Section(
    "CpuUsage",
    {"util_percent": "util", **_same("cpu_id", "instance_id")},
    factors={"util_percent": _OF_100},
)

SECTIONS: dict[str, tuple[Section, ...]] = {
    "instruction": (_INSTRUCTION,),
    "dma": (_PACKET, _AGGREGATED),
    "semaphore_update": (
        Section("SemaphoreUpdate", _same("id", "value", "update_source", "update_operation_type")),
    ),
    "instruction_usage": (
        Section(
            "SbufUsage",
            {
                "avg_util_percent": "usage_avg",
                **{f"partition_{part}_util_percent": f"partition_{part}_usage" for part in (0, 32, 64, 96)},
            },
            where=("type", frozenset({"sb", "sbuf"})),
        ),
        Section(
            "PsumUsage",
            {
                "avg_util_percent": "usage_avg",
                **{f"bank_{bank}_util_percent": f"bank_{bank}_usage" for bank in range(8)},
            },
            where=("type", frozenset({"psum"})),
        ),
    ),
    "dma_throughput": (
        Section(
            "DmaUsage",
            {"current_throughput": "transfer_rate", "total_transfer_bytes": "total_transfer_bytes"},
            where=("uses_hbm", frozenset({"false"})),
        ),
        Section(
            "HbmUsage",
            {"current_throughput": "hbm_transfer_rate", "total_transfer_bytes": "hbm_total_transfer_bytes"},
            where=("uses_hbm", frozenset({"true"})),
        ),
    ),
    "active_time": (Section("ActiveTime", _same("engine"), is_span=True),),
    "pending_dma": (Section("PendingDma", _same("value")),),
    "ham": (Section("Throttle", _same("duration", "k", "n", "type")),),
    "cc_ops": (
        Section(
            "CcOp",
            _same(
                "operation", "algorithm", "num_elements", "dtype", "op_id", "stream_id", "stream_index",
                "trigger_engine", "input_size", "output_size", "algorithm_bandwidth", "bus_bandwidth",
                "trigger_start_ts", "cc_trigger_start_delay", "replica_group_id", "replica_group",
            ),
            is_span=True,
        ),
    ),
    "dma_queues_info": (
        Section(
            "DmaQueuesInfo",
            {
                "name": "q_name",
                "type": "q_type",
                "idx": "q_idx",
                "engine_idx": "q_eng_idx",
                "axi_port": "q_axi_port",
                "dram_channel": "q_dram_channel",
            },
        ),
    ),
    "neff_node": (Section("TensorInfo", _same("variable_name", "type", "format", "shape", "size", "node")),),
    "nc_mem_usage": (
        Section(
            "HbmUsageSummaryByType",
            {
                "neuron_device_idx": "nd",
                "neuroncore_idx": "nc",
                "usage_type": "usage_type",
                "usage_bytes": "amount_bytes",
            },
        ),
    ),
    "neff_header": (
        Section(
            "NeffHeader",
            {
                "neuroncore_count": "number_of_neuroncores",
                "logical_neuroncore_count": "number_of_logical_neuroncores",
                "pcore_count_per_lnc": "number_of_neuroncores_per_lnc",
                **_same("network_name", "uuid", "hash", "enabled_features", "header_size", "data_size"),
                **_same("major_version", "minor_version", "package_version", "build_version"),
            },
        ),
    ),
    "flow": (Section("Flow", _same("in_id", "out_id", "in_table", "out_table")),),
    "cpu_util": (_PROCESSOR_LOAD,),
    "mem_usage": (
        Section(
            "HostMemUsage",
            {"used_bytes": "usage", "used_percent": "percent_usage", "instance_id": "instance_id"},
            factors={"used_percent": _OF_100},
        ),
    ),
}  # fmt: skip
