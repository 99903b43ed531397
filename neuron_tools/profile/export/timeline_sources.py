"""Which table becomes which slices and counters: the only place where both the schema and the tracks meet."""

from __future__ import annotations

from enum import Enum

from neuron_tools.frozen import frozen
from neuron_tools.profile.export.row_label import RowLabel

START, END = 't."start_ts"', 't."end_ts"'


class Place(Enum):
    """Under which heading a source's tracks stand."""

    CORE = "core"
    PROCESS = "process"
    THREAD = "thread"
    TRACE = "trace"


@frozen
class SpanSource:
    """A table whose rows become slices.

    Attributes:
        kind: What the report counts these slices as.
        table: Published (or own) table.
        track, name: Name of the track and of the slice.
        rank: Place of the track (or of the group, where there is one) among its siblings.
        arguments: Columns to show, where they exist and are not null, an empty text or 0.
        place: Heading of its tracks.
        index: Column that numbers the NeuronCore or thread.
        group: A further heading; "" = none.
        start, end: SQL for the times.
        nested: Whether slices of one track contain each other.
        condition: SQL that chooses the rows.
        layered: Whether the column `layer` adds the modules around each slice.
    """

    kind: str
    table: str
    track: RowLabel
    name: RowLabel
    rank: int
    arguments: tuple[str, ...]
    place: Place = Place.CORE
    index: str = "pcore_idx"
    group: str = ""
    start: str = START
    end: str = END
    nested: bool = False
    condition: str = "TRUE"
    layered: bool = False

    @property
    def category(self) -> str | None:
        """Category of its slices, by which a reader knows what they are; None where each row has its own."""
        return None if self.place is Place.TRACE else self.kind


@frozen
class CounterSource:
    """A table whose rows become samples of one counter."""

    table: str
    column: str
    name: str
    unit: str
    rank: int
    index: str = "pcore_idx"


ENGINE_RANKS = {"Tensor": 10, "TensorMatrix": 11, "Vector": 12, "Scalar": 13, "GpSimd": 14, "Sync": 15}
FRAMEWORK_RANK, HLO_RANK, EXECUTION_RANK, OTHER_ENGINE_RANK = 1, 2, 0, 19
QUEUE_RANK, COLLECTIVE_RANK, COLLECTIVE_CORE_RANK, THROTTLE_RANK, COUNTER_RANK = 20, 30, 31, 32, 40
RUNTIME_RANK = 1 << 20
TRACE_COUNTER = "TraceCounter"
"""Its samples say themselves which counter they belong to."""

_BYTES = ("hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes")

INSTRUCTIONS = SpanSource(
    "instructions", "Instruction", RowLabel(("timeline_track", "engine")), RowLabel(("opcode",)),
    OTHER_ENGINE_RANK,
    ("id", "layer", "operands", "hlo_name", "framework_name", *_BYTES, "psum_read_bytes", "psum_write_bytes",
     "raw_flops", "flops_transpose", "tensor_elements", "evt_wait_time_ns", "dma_wait_time_ns",
     "tensor_instruction_type", "performance_mode", "scalar_activation_fn", "nki_source_location",
     "is_backward"),
)  # fmt: skip
DMA_TRANSFERS = SpanSource(
    "dma_transfers", "DmaPacketAggregated", RowLabel(("queue_name",), numbered=("queue ", "queue_idx")),
    RowLabel(("variable", "op"), empty="unknown", default="transfer"), QUEUE_RANK,
    ("id", "variable", "op", "transfer_bytes", "read_bytes", "write_bytes", "throughput", "source", "dest",
     "queue_type", "semaphore_id", "read_shape", "write_shape", "is_transpose_mode", "hlo_name", "layer",
     "framework_name", "is_backward"),
    group="DMA queues",
)  # fmt: skip
FRAMEWORK_OPERATIONS = SpanSource(
    "framework_operations", "FrameworkInstruction", RowLabel(default="Framework"),
    RowLabel(("framework_name",), default="operation"), FRAMEWORK_RANK,
    ("id", "layer", *_BYTES, "tensor_engine_instruction_count", "vector_engine_instruction_count",
     "scalar_engine_instruction_count", "gpsimd_engine_instruction_count", "sync_engine_instruction_count",
     "is_backward"),
    nested=True, layered=True,
)  # fmt: skip
HLO_OPERATIONS = SpanSource(
    "hlo_operations", "HloInstruction", RowLabel(default="HLO"), RowLabel(("hlo_name",)), HLO_RANK,
    ("id", "layer", "hlo_opcode", "shape", "model_flops", "framework_name", "raw_framework_id", *_BYTES,
     "is_backward"),
)  # fmt: skip
COLLECTIVES = SpanSource(
    "collectives", "CcOp", RowLabel(numbered=("stream ", "stream_index")), RowLabel(("operation",)),
    COLLECTIVE_RANK,
    ("op_id", "algorithm", "num_elements", "dtype", "input_size", "output_size", "algorithm_bandwidth",
     "bus_bandwidth", "replica_group", "trigger_engine", "cc_trigger_start_delay"),
    group="Collectives",
)  # fmt: skip
COLLECTIVE_CORES = SpanSource(
    "collective_core_instructions", "CcInstruction", RowLabel(numbered=("CC-core ", "core_idx")),
    RowLabel(("description",)), COLLECTIVE_CORE_RANK, ("trigger_engine", "trigger_start_ts"),
    group="CC-cores",
)  # fmt: skip
THROTTLING = SpanSource(
    "throttling", "Throttle", RowLabel(default="Throttling"), RowLabel(("type",)), THROTTLE_RANK, ("k", "n"),
    start='t."timestamp"', end='t."timestamp" + t."duration"',
)  # fmt: skip
EXECUTIONS = SpanSource(
    "device_events", "SystemProfileEvents", RowLabel(default="Executions"), RowLabel(("name",)),
    EXECUTION_RANK,
    ("id", "trace_event_source", "framework_stream_id", "extra_attributes_json"),
    index="nc_idx", condition="t.\"trace_event_source\" = 'neuron_hw'",
)  # fmt: skip
RUNTIME_CALLS = SpanSource(
    "runtime_events", "SystemProfileEvents",
    RowLabel(("trace_event_source",), default="events", suffix=(" thread ", "thread_id")),
    RowLabel(("name",)), RUNTIME_RANK,
    ("id", "thread_id", "nc_idx", "framework_stream_id", "extra_attributes_json"),
    Place.PROCESS, "thread_id", "Neuron runtime", nested=True,
    condition="t.\"trace_event_source\" IS DISTINCT FROM 'neuron_hw'",
)  # fmt: skip
HOST_SPANS = SpanSource(
    "host_spans", "HostSpan", RowLabel(), RowLabel(("name",)), 0, ("kind", "layer"),
    Place.THREAD, "thread_idx", nested=True,
)  # fmt: skip
TRACE_SPANS = SpanSource(
    "trace_spans", "TraceSpan", RowLabel(), RowLabel(("name",)), 0, ("layer",),
    Place.TRACE, "track_idx", nested=True,
)  # fmt: skip

SPAN_SOURCES = (
    HOST_SPANS, RUNTIME_CALLS, EXECUTIONS, FRAMEWORK_OPERATIONS, HLO_OPERATIONS, INSTRUCTIONS, DMA_TRANSFERS,
    COLLECTIVES, COLLECTIVE_CORES, THROTTLING, TRACE_SPANS,
)  # fmt: skip

COUNTER_SOURCES = (
    CounterSource("HbmUsage", "current_throughput", "HBM bandwidth", "bytes/s", COUNTER_RANK),
    CounterSource("DmaUsage", "current_throughput", "DMA bandwidth", "bytes/s", COUNTER_RANK + 1),
    CounterSource("PendingDma", "value", "Pending DMA", "transfers", COUNTER_RANK + 2),
    CounterSource("SbufUsage", "avg_util_percent", "SBUF use", "fraction", COUNTER_RANK + 3),
    CounterSource("PsumUsage", "avg_util_percent", "PSUM use", "fraction", COUNTER_RANK + 4),
    CounterSource(
        "SystemProfileHbmUsage", "total_bytes", "HBM bytes", "bytes", COUNTER_RANK + 5, index="device_idx"
    ),
    CounterSource("MfuUsage", "mfu", "MFU", "fraction", COUNTER_RANK + 6),
    CounterSource(TRACE_COUNTER, "value", "", "", 0, index="track_idx"),
)
