"""Which table becomes which slices and counters: the only place where both the schema and the tracks meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from neuron_tools.profile.export.row_label import RowLabel

START, END = 't."start_ts"', 't."end_ts"'


class Place(Enum):
    """Under which heading a source's tracks stand."""

    CORE = "core"
    PROCESS = "process"
    THREAD = "thread"
    TRACE = "trace"


@dataclass(frozen=True, slots=True)
class SpanSource:
    """A table whose rows become slices.

    Attributes:
        kind: What the report counts these slices as.
        table: Published (or own) table.
        place: Heading of its tracks.
        index: Column that numbers the NeuronCore or thread.
        group: A further heading; "" = none.
        track, name: Name of the track and of the slice.
        rank: Place of the track (or of the group, where there is one) among its siblings.
        arguments: Label -> column; kept where the column exists, is not null and not an empty text or 0.
        start, end: SQL for the times.
        nested: Whether slices of one track contain each other.
        condition: SQL that chooses the rows.
        layered: Whether the column `layer` adds the modules around each slice.
    """

    kind: str
    table: str
    place: Place
    index: str
    track: RowLabel
    name: RowLabel
    rank: int
    group: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    start: str = START
    end: str = END
    nested: bool = False
    condition: str = "TRUE"
    layered: bool = False


@dataclass(frozen=True, slots=True)
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

_PLAIN = ("id", "layer")
_BYTES = ("hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes")


def _same(*columns: str) -> dict[str, str]:
    return {column: column for column in columns}


INSTRUCTIONS = SpanSource(
    kind="instructions",
    table="Instruction",
    place=Place.CORE,
    index="pcore_idx",
    track=RowLabel(("timeline_track", "engine")),
    name=RowLabel(("opcode",)),
    rank=OTHER_ENGINE_RANK,
    arguments=_same(
        *_PLAIN, "operands", "hlo_name", "framework_name", *_BYTES, "psum_read_bytes", "psum_write_bytes",
        "raw_flops", "flops_transpose", "tensor_elements", "evt_wait_time_ns", "dma_wait_time_ns",
        "tensor_instruction_type", "performance_mode", "scalar_activation_fn", "nki_source_location",
        "is_backward",
    ),
)  # fmt: skip

DMA_TRANSFERS = SpanSource(
    kind="dma_transfers",
    table="DmaPacketAggregated",
    place=Place.CORE,
    index="pcore_idx",
    group="DMA queues",
    track=RowLabel(("queue_name",), numbered=("queue ", "queue_idx")),
    name=RowLabel(("variable", "op"), empty="unknown", default="transfer"),
    rank=QUEUE_RANK,
    arguments=_same(
        "id", "variable", "op", "transfer_bytes", "read_bytes", "write_bytes", "throughput", "source", "dest",
        "queue_type", "semaphore_id", "read_shape", "write_shape", "is_transpose_mode", "hlo_name", "layer",
        "framework_name", "is_backward",
    ),
)  # fmt: skip

FRAMEWORK_OPERATIONS = SpanSource(
    kind="framework_operations",
    table="FrameworkInstruction",
    place=Place.CORE,
    index="pcore_idx",
    track=RowLabel(default="Framework"),
    name=RowLabel(("framework_name",), default="operation"),
    rank=FRAMEWORK_RANK,
    arguments=_same(
        *_PLAIN, *_BYTES, "tensor_engine_instruction_count", "vector_engine_instruction_count",
        "scalar_engine_instruction_count", "gpsimd_engine_instruction_count", "sync_engine_instruction_count",
        "is_backward",
    ),
    nested=True,
    layered=True,
)  # fmt: skip

HLO_OPERATIONS = SpanSource(
    kind="hlo_operations",
    table="HloInstruction",
    place=Place.CORE,
    index="pcore_idx",
    track=RowLabel(default="HLO"),
    name=RowLabel(("hlo_name",)),
    rank=HLO_RANK,
    arguments=_same(
        *_PLAIN,
        "hlo_opcode",
        "shape",
        "model_flops",
        "framework_name",
        "raw_framework_id",
        *_BYTES,
        "is_backward",
    ),
)

COLLECTIVES = SpanSource(
    kind="collectives",
    table="CcOp",
    place=Place.CORE,
    index="pcore_idx",
    group="Collectives",
    track=RowLabel(numbered=("stream ", "stream_index")),
    name=RowLabel(("operation",)),
    rank=COLLECTIVE_RANK,
    arguments=_same(
        "op_id", "algorithm", "num_elements", "dtype", "input_size", "output_size", "algorithm_bandwidth",
        "bus_bandwidth", "replica_group", "trigger_engine", "cc_trigger_start_delay",
    ),
)  # fmt: skip

COLLECTIVE_CORES = SpanSource(
    kind="collective_core_instructions",
    table="CcInstruction",
    place=Place.CORE,
    index="pcore_idx",
    group="CC-cores",
    track=RowLabel(numbered=("CC-core ", "core_idx")),
    name=RowLabel(("description",)),
    rank=COLLECTIVE_CORE_RANK,
    arguments=_same("trigger_engine", "trigger_start_ts"),
)

THROTTLING = SpanSource(
    kind="throttling",
    table="Throttle",
    place=Place.CORE,
    index="pcore_idx",
    track=RowLabel(default="Throttling"),
    name=RowLabel(("type",)),
    rank=THROTTLE_RANK,
    arguments=_same("k", "n"),
    start='t."timestamp"',
    end='t."timestamp" + t."duration"',
)

EXECUTIONS = SpanSource(
    kind="device_events",
    table="SystemProfileEvents",
    place=Place.CORE,
    index="nc_idx",
    track=RowLabel(default="Executions"),
    name=RowLabel(("name",)),
    rank=EXECUTION_RANK,
    arguments=_same("id", "trace_event_source", "framework_stream_id", "extra_attributes_json"),
    condition="t.\"trace_event_source\" = 'neuron_hw'",
)

RUNTIME_CALLS = SpanSource(
    kind="runtime_events",
    table="SystemProfileEvents",
    place=Place.PROCESS,
    index="thread_id",
    group="Neuron runtime",
    track=RowLabel(("trace_event_source",), default="events", suffix=(" thread ", "thread_id")),
    name=RowLabel(("name",)),
    rank=RUNTIME_RANK,
    arguments=_same("id", "thread_id", "nc_idx", "framework_stream_id", "extra_attributes_json"),
    nested=True,
    condition="t.\"trace_event_source\" IS DISTINCT FROM 'neuron_hw'",
)

HOST_SPANS = SpanSource(
    kind="host_spans",
    table="HostSpan",
    place=Place.THREAD,
    index="thread_idx",
    track=RowLabel(),
    name=RowLabel(("name",)),
    rank=0,
    arguments=_same("kind", "layer"),
    nested=True,
)

TRACE_SPANS = SpanSource(
    kind="trace_spans",
    table="TraceSpan",
    place=Place.TRACE,
    index="track_idx",
    track=RowLabel(),
    name=RowLabel(("name",)),
    rank=0,
    arguments=_same("layer"),
    nested=True,
)

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
