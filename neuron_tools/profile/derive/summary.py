"""The Summary metrics: one small function per group, each metric with its published meaning.

Names, units and meanings: Neuron Explorer schema 7.4.0, table Summary, and the metric descriptions that
Neuron Profiler 2.28 puts into its JSON. `*_percent` is a fraction from 0 to 1 of the total time, unless said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuron_tools.profile.derive.busy import (
    CC_CORES_ENGINE,
    CC_ENGINE,
    DMA_ENGINE,
    HARDWARE_DYNAMIC,
    SOFTWARE_DYNAMIC,
    STATIC,
    BusyTime,
)
from neuron_tools.profile.derive.island_store import IslandStream
from neuron_tools.profile.derive.peaks import Peaks
from neuron_tools.profile.store.recorded import RecordedTables

NANOSECOND = 1e-9
ENGINES = ("tensor", "vector", "scalar", "sync", "gpsimd")
# Opcodes that set up and synchronise: total_exec_time runs from the first to the last of the others.
SETUP_OPCODES = (
    "NOP", "SET_ORDERING_MODE", "EVENT_SEMAPHORE", "EVENT_SEMAPHORE_RANGE_CLEAR", "NOTIFY", "COMPARE_BRANCH",
    "DRAIN", "WRITE", "TENSOR_LOAD", "MODIFY_POOL_CONFIG",
)  # fmt: skip
EVENT_TABLES = ("SemaphoreUpdate", "PendingDma", "Throttle", "Error")
INPUT_KINDS, OUTPUT_KINDS, WEIGHT_KINDS = ("in", "input"), ("out", "output"), ("weight", "constant")

Metrics = dict[str, Any]


@dataclass(frozen=True)
class SummaryInput:
    """What the metrics are computed from.

    Attributes:
        total_ns: Length of the profile: first to last device span, idle gaps included.
        derived: Tables that follow from others and so do not count as recorded rows.
    """

    recorded: RecordedTables
    busy: BusyTime
    peaks: Peaks
    total_ns: int
    derived: tuple[str, ...] = ()

    @property
    def total_s(self) -> float:
        """Length of the profile in seconds."""
        return self.total_ns * NANOSECOND

    def share(self, part_ns: float) -> float:
        """A time as a fraction of the total."""
        return part_ns / self.total_ns if self.total_ns else 0.0


def summary_metrics(given: SummaryInput) -> Metrics:
    """All Summary metrics that the profile's data allows."""
    work, moved = _flops(given), _bytes(given)
    return {
        **_times(given),
        **_counts(given),
        **work,
        **moved,
        **_transfers(given),
        **_transfer_kinds(given),
        **_tensor_sizes(given),
        **_intensity(given, work, moved),
        **_utilisation(given, work, moved),
        **_memory_utilisation(given, moved),
        **_engines(given),
        **_collectives(given),
    }


def device_extent(recorded: RecordedTables) -> tuple[int, int]:
    """Start of the first and end of the last device span, in ns; (0, 0) without any."""
    spans = " UNION ALL ".join(
        f"SELECT min(start_ts) AS s, max(end_ts) AS e FROM {table}"
        for table in ("Instruction", "DmaPacket", "DmaPacketAggregated", "CcOp", "CcInstruction")
    )
    row = recorded.row(f"SELECT min(s) AS s, max(e) AS e FROM ({spans})")
    return (row["s"] or 0, row["e"] or 0)


def _times(given: SummaryInput) -> Metrics:
    active = given.busy.total_union().total
    setup = ", ".join(f"'{opcode}'" for opcode in SETUP_OPCODES)
    row = given.recorded.row(f"""
        SELECT max(e) - min(s) AS ns FROM (
            SELECT min(start_ts) AS s, max(end_ts) AS e FROM Instruction WHERE opcode NOT IN ({setup})
            UNION ALL SELECT min(start_ts), max(end_ts) FROM DmaPacketAggregated
            UNION ALL SELECT min(start_ts), max(end_ts) FROM DmaPacket)
    """)
    return {
        "total_time": given.total_s,
        "neuroncore_cycle_count": round(given.total_s * given.peaks.clock_hz),
        "total_exec_time": (row["ns"] or 0) * NANOSECOND,
        "total_active_time": active * NANOSECOND,
        "total_active_time_percent": given.share(active),
    }


def _counts(given: SummaryInput) -> Metrics:
    rows = given.recorded.row_count
    events = sum(rows(table) for table in EVENT_TABLES)
    transfers = rows("DmaPacket") or rows("DmaPacketAggregated")
    recorded = [name for name in given.recorded.table_names() if name not in given.derived]
    return {
        "event_count": events,
        "trace_count": rows("Instruction") + events + transfers,
        "total_row_count": sum(rows(name) for name in recorded),
    }


def _flops(given: SummaryInput) -> Metrics:
    """Tensor engine work: raw_flops of an instruction includes transposes, flops_transpose is that part.

    What a backward pass computes again is not the model's: MFU leaves it out, HFU does not (Chowdhery et al.,
    PaLM, 2022, appendix B).
    """
    return _integers(
        given.recorded.row("""
            SELECT (SELECT sum(model_flops) FILTER (NOT coalesce(is_recomputed, false)) FROM HloInstruction)
                       AS model_flops,
                   sum(raw_flops) AS hardware_flops, sum(flops_transpose) AS transpose_flops,
                   sum(adjusted_flops) AS adjusted_hardware_flops,
                   sum(adjusted_flops_transpose) AS adjusted_transpose_flops
            FROM Instruction
        """)
    )


def _bytes(given: SummaryInput) -> Metrics:
    """Bytes moved by DMA and by instructions.

    DMA transfers say what they move. Where they do not name memories (profiles of other tools), the
    instructions that trigger them do, so the larger of both counts. SBUF is used by both: there, what an
    instruction only triggers counts with the transfer.
    """
    dma = _integers(given.recorded.row(_DMA_BYTES))
    engine = _integers(given.recorded.row(_ENGINE_BYTES))
    one_of = (
        "hbm_read_bytes", "hbm_write_bytes", "spill_save_bytes", "spill_reload_bytes", "input_queue_bytes",
        "output_queue_bytes", "weight_queue_bytes",
    )  # fmt: skip
    both = ("sbuf_read_bytes", "sbuf_write_bytes")
    return {
        **{name: max(dma[name], engine[name]) for name in one_of},
        **{name: dma[name] + engine[name] for name in both},
        **{name: value for name, value in engine.items() if name.startswith("psum_")},
    }


_DMA_BYTES = """
    SELECT sum(read_bytes) FILTER (lower(source) = 'hbm' AND lower(dest) <> 'host') AS hbm_read_bytes,
           sum(write_bytes) FILTER (lower(dest) = 'hbm' AND lower(source) <> 'host') AS hbm_write_bytes,
           sum(read_bytes) FILTER (lower(source) = 'sbuf') AS sbuf_read_bytes,
           sum(write_bytes) FILTER (lower(dest) = 'sbuf') AS sbuf_write_bytes,
           sum(transfer_bytes) FILTER (lower(op) = 'spill_save') AS spill_save_bytes,
           sum(transfer_bytes) FILTER (lower(op) = 'spill_reload') AS spill_reload_bytes,
           sum(transfer_bytes) FILTER (queue_type = 'input') AS input_queue_bytes,
           sum(transfer_bytes) FILTER (queue_type = 'output') AS output_queue_bytes,
           sum(transfer_bytes) FILTER (queue_type = 'data') AS weight_queue_bytes
    FROM DmaPacketAggregated
"""
_ENGINE_BYTES = """
    SELECT sum(hbm_read_bytes) AS hbm_read_bytes, sum(hbm_write_bytes) AS hbm_write_bytes,
           sum(sbuf_read_bytes) FILTER (NOT contains(opcode, 'DMA')) AS sbuf_read_bytes,
           sum(sbuf_write_bytes) FILTER (NOT contains(opcode, 'DMA')) AS sbuf_write_bytes,
           sum(spill_save_bytes) AS spill_save_bytes, sum(spill_reload_bytes) AS spill_reload_bytes,
           sum(input_queue_bytes) AS input_queue_bytes, sum(output_queue_bytes) AS output_queue_bytes,
           sum(weight_queue_bytes) AS weight_queue_bytes,
           sum(psum_read_bytes) AS psum_read_bytes, sum(psum_write_bytes) AS psum_write_bytes,
           sum(psum_read_sbuf_write_bytes) AS psum_read_sbuf_write_bytes,
           count(*) FILTER (psum_read_sbuf_write_bytes > 0) AS psum_read_sbuf_write_count
    FROM Instruction
"""


def _transfers(given: SummaryInput) -> Metrics:
    active = given.busy.engine_union(DMA_ENGINE).total
    row = given.recorded.row("""
        SELECT count(*) AS n, sum(duration_ns) AS time_ns, sum(transfer_bytes) AS bytes,
               count(DISTINCT (process_idx, queue_name)) AS queues, sum(packet_time_ns) AS packet_time_ns
        FROM DmaPacketAggregated
    """)
    packet_ns = row["packet_time_ns"]
    if given.recorded.row_count("DmaPacket"):
        packet_ns = given.recorded.row("SELECT sum(duration_ns) AS ns FROM DmaPacket")["ns"]
    return {
        "dma_active_time": active * NANOSECOND,
        "dma_active_cycles": round(active * NANOSECOND * given.peaks.clock_hz),
        "dma_active_time_percent": given.share(active),
        "dma_packet_time": None if packet_ns is None else int(packet_ns) * NANOSECOND,
        "dma_transfer_time": int(row["time_ns"] or 0) * NANOSECOND,
        "dma_transfer_count": row["n"],
        "dma_transfer_total_bytes": int(row["bytes"] or 0),
        "dma_transfer_average_bytes": int(row["bytes"] or 0) / row["n"] if row["n"] else 0.0,
        "dma_queue_count": given.recorded.row_count("DmaQueuesInfo") or row["queues"],
    }


def _transfer_kinds(given: SummaryInput) -> Metrics:
    """Static (made by the compiler) and dynamic packets; active times are fractions of dma_active_time."""
    active = {kind: _kind_active_ns(given, kind) for kind in (STATIC, SOFTWARE_DYNAMIC, HARDWARE_DYNAMIC)}
    dynamic_ns = _kind_active_ns(given, SOFTWARE_DYNAMIC, HARDWARE_DYNAMIC)
    dma_ns = given.busy.engine_union(DMA_ENGINE).total
    packets, sizes = _kind_counts(given)
    packet_total, size_total = sum(packets.values()), sum(sizes.values())
    metrics: Metrics = {
        "dynamic_dma_active_time_percent": _ratio(dynamic_ns, dma_ns),
        "dynamic_dma_packet_percent": _ratio(packet_total - packets[STATIC], packet_total),
        "dynamic_dma_size_percent": _ratio(size_total - sizes[STATIC], size_total),
    }
    for kind, active_ns in active.items():
        metrics[f"{kind}_dma_active_time"] = active_ns * NANOSECOND
        metrics[f"{kind}_dma_active_time_percent"] = _ratio(active_ns, dma_ns)
        metrics[f"{kind}_dma_packet_count"] = packets[kind]
        metrics[f"{kind}_dma_packet_percent"] = _ratio(packets[kind], packet_total)
        metrics[f"{kind}_dma_size"] = sizes[kind]
        metrics[f"{kind}_dma_size_percent"] = _ratio(sizes[kind], size_total)
    return metrics


def _kind_active_ns(given: SummaryInput, *kinds: str) -> int:
    names, islands = given.busy.dma_kind_names, given.busy.dma_kinds
    return IslandStream.joined(islands.of(names.number(kind)) for kind in kinds).total


def _kind_counts(given: SummaryInput) -> tuple[dict[str, int], dict[str, int]]:
    """Packets and bytes of each kind."""
    has_packets = given.recorded.row_count("DmaPacket") > 0
    table, count = (
        ("DmaPacket", "count(*)")
        if has_packets
        else (
            "DmaPacketAggregated",
            "sum(coalesce(packet_count, 1))",
        )
    )
    rows = given.recorded.rows(f"""
        SELECT CASE WHEN queue_type IN ('{SOFTWARE_DYNAMIC}', '{HARDWARE_DYNAMIC}') THEN queue_type
                    ELSE '{STATIC}' END AS kind, {count} AS packets, sum(transfer_bytes) AS size
        FROM {table} GROUP BY 1
    """)
    packets, sizes = (dict.fromkeys((STATIC, SOFTWARE_DYNAMIC, HARDWARE_DYNAMIC), 0) for _ in range(2))
    for row in rows:
        packets[row["kind"]] = int(row["packets"])
        sizes[row["kind"]] = int(row["size"] or 0)
    return packets, sizes


def _tensor_sizes(given: SummaryInput) -> Metrics:
    """Sizes of the tensors that the programs declare, each program once."""
    rows = given.recorded.rows("SELECT lower(type) AS kind, sum(size) AS size FROM TensorInfo GROUP BY 1")
    size = {row["kind"]: int(row["size"] or 0) for row in rows}
    weights = sum(size.get(kind, 0) for kind in WEIGHT_KINDS)
    inputs = sum(size.get(kind, 0) for kind in INPUT_KINDS)
    outputs = sum(size.get(kind, 0) for kind in OUTPUT_KINDS)
    return {
        "weight_size_bytes": weights,
        "inputs_and_weights_size_bytes": inputs + weights,
        "inputs_outputs_weights_size_bytes": inputs + outputs + weights,
    }


def _intensity(given: SummaryInput, work: Metrics, moved: Metrics) -> Metrics:
    useful = work["hardware_flops"] - work["transpose_flops"]
    peaks = given.peaks
    return {
        "mm_arithmetic_intensity": _ratio(useful, moved["hbm_read_bytes"] + moved["hbm_write_bytes"]),
        "peak_flops_bandwidth_ratio": _ratio(peaks.core_flops_per_second, peaks.stack_bytes_per_second),
    }


def _utilisation(given: SummaryInput, work: Metrics, moved: Metrics) -> Metrics:
    """MFU and HFU against the Tensor engines' peak, and the roofline's cap on each.

    The estimate without suffix is the HLO's where the model's FLOPs are known, else the instructions'.
    """
    useful = work["hardware_flops"] - work["transpose_flops"]
    by_model = _mfu(given, "hlo", work["model_flops"], moved)
    by_instruction = _mfu(given, "inst", useful, moved)
    best = by_model if work["model_flops"] else by_instruction
    possible = given.peaks.flops_per_second * given.total_s
    return {
        **by_model,
        **by_instruction,
        **{name.replace("_hlo_", "_").replace("_inst_", "_"): value for name, value in best.items()},
        "hfu_estimated_percent": _ratio(work["hardware_flops"], possible),
    }


def _mfu(given: SummaryInput, basis: str, flops: int, moved: Metrics) -> Metrics:
    hbm_bytes = moved["hbm_read_bytes"] + moved["hbm_write_bytes"]
    balance = _ratio(given.peaks.core_flops_per_second, given.peaks.stack_bytes_per_second)
    possible = given.peaks.flops_per_second * given.total_s
    cap = min(1.0, _ratio(_ratio(flops, hbm_bytes), balance)) if hbm_bytes else float(flops > 0)
    return {
        f"mfu_{basis}_estimated_percent": _ratio(flops, possible),
        f"mfu_{basis}_max_achievable_estimated_percent": cap,
    }


def _memory_utilisation(given: SummaryInput, moved: Metrics) -> Metrics:
    possible = given.peaks.hbm_bytes_per_second * given.total_s
    hbm_bytes = moved["hbm_read_bytes"] + moved["hbm_write_bytes"]
    # A gather reads a part of its table only: what is declared can be more than the run could read.
    return {
        "mbu_estimated_percent": _ratio(hbm_bytes, possible),
        "mbu_min_read_util_percent": min(1.0, _ratio(_declared_read_bytes(given), possible)),
    }


def _declared_read_bytes(given: SummaryInput) -> int:
    """Inputs and weights of each program, as often as it ran: once for all cores of a logical one."""
    kinds = ", ".join(f"'{kind}'" for kind in (*INPUT_KINDS, *WEIGHT_KINDS))
    row = given.recorded.row(f"""
        WITH executions AS (
            SELECT process_idx, executable_idx, ceil(count(*) / max(physical_cores)) AS n
            FROM ExecutionInfo, (
                SELECT greatest(coalesce(max(num_physical_cores), 1), 1) AS physical_cores FROM Metadata)
            GROUP BY ALL)
        SELECT sum(t.size * coalesce(e.n, 1)) AS bytes FROM TensorInfo t LEFT JOIN executions e
        ON e.process_idx = t.process_idx AND e.executable_idx = t.executable_idx
        WHERE lower(t.type) IN ({kinds})
    """)
    return int(row["bytes"] or 0)


def _engines(given: SummaryInput) -> Metrics:
    rows = given.recorded.rows("""
        SELECT lower(engine) AS engine, count(*) AS n, sum(duration_ns) AS ns,
               count(*) FILTER (opcode = 'MATMUL') AS matmuls,
               count(*) FILTER (opcode IN ('ACTIVATE', 'ACTIVATE_QUANTIZE')) AS activates,
               sum(duration_ns) FILTER (opcode IN ('ACTIVATE', 'ACTIVATE_QUANTIZE')) AS activate_ns
        FROM Instruction GROUP BY 1
    """)
    metrics: Metrics = {
        "matmul_instruction_count": sum(row["matmuls"] for row in rows),
        "activate_instruction_count": sum(row["activates"] for row in rows),
        "activate_instruction_time": sum(int(row["activate_ns"] or 0) for row in rows) * NANOSECOND,
    }
    by_engine = {row["engine"]: row for row in rows}
    for engine in ENGINES:
        metrics.update(_engine(given, engine, by_engine.get(engine, {})))
    return metrics


def _engine(given: SummaryInput, engine: str, row: Mapping[str, Any]) -> Metrics:
    active = given.busy.engine_union(engine).total
    return {
        f"{engine}_engine_instruction_time": int(row.get("ns") or 0) * NANOSECOND,
        f"{engine}_engine_active_time": active * NANOSECOND,
        f"{engine}_engine_active_time_percent": given.share(active),
        f"{engine}_engine_instruction_count": row.get("n", 0),
    }


def _collectives(given: SummaryInput) -> Metrics:
    metrics: Metrics = {}
    sources = (("CcOp", "cc_op", CC_ENGINE), ("CcInstruction", "cc_cores_instruction", CC_CORES_ENGINE))
    for table, name, engine in sources:
        row = given.recorded.row(f"SELECT count(*) AS n, sum(duration_ns) AS ns FROM {table}")
        active = given.busy.engine_union(engine).total
        metrics[f"{name}_time"] = int(row["ns"] or 0) * NANOSECOND
        metrics[f"{name}_active_time"] = active * NANOSECOND
        metrics[f"{name}_active_time_percent"] = given.share(active)
        metrics[f"{name}_count"] = row["n"]
    return metrics


def _integers(row: Mapping[str, Any]) -> Metrics:
    return {name: int(value or 0) for name, value in row.items()}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
