"""Which tables hold spans and samples, and how their rows are split into tracks."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline.track import COUNTER


@frozen
class SpanSource:
    """A table whose rows are spans of tracks.

    Rows with equal `process_idx`, `core`, `number` and text belong to one track.

    Attributes:
        table: The table.
        level: Level of its tracks; of TraceSpan, where TraceTrack says nothing.
        names: Text columns for a span's name: the first that is not null or empty counts.
        core: Column that numbers the NeuronCore or device; "" for what belongs to the host.
        texts: Text columns that tell the tracks of a core apart: the first that is not null or empty counts.
        number: Integer column that does so.
        end: Column of the end; where it is empty, `duration` is added to the start.
        only, but_not: (column, text): rows to take, or to leave.
        layers: Whether a second track of modules is made from the column `layer`.
        limit: Columns of a limit, so many of so many, that a span's name tells instead of `names`.
        title: Name of a track; {text} and {number} stand for what tells it apart.
        again: What the ids of its tracks have in place of the level, where another source shows the same
            rows, too: they are searched there.
    """

    table: str
    level: str
    names: tuple[str, ...]
    core: str = "pcore_idx"
    texts: tuple[str, ...] = ()
    number: str = ""
    start: str = "start_ts"
    end: str = "end_ts"
    duration: str = ""
    only: tuple[str, str] | None = None
    but_not: tuple[str, str] | None = None
    layers: bool = False
    limit: tuple[str, ...] = ()
    title: str = "{text}"
    again: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        layer = ("layer", "is_backward") if self.layers else ()
        conditions = [condition[0] for condition in (self.only, self.but_not) if condition]
        named = ("process_idx", self.core, self.number, self.start, self.end, self.duration)
        texts = (*self.texts, *self.names, *self.limit)
        return tuple(dict.fromkeys(filter(None, (*named, *texts, *layer, *conditions))))


@frozen
class CounterSource:
    """A table whose rows are samples of counters.

    Attributes:
        value: Column of the value.
        name: Name of the counter.
        core: Column that numbers the core or device; "" for what belongs to the host.
        number: Integer column that tells the counters of a core apart.
    """

    table: str
    value: str
    name: str
    unit: str = ""
    core: str = "pcore_idx"
    number: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return tuple(filter(None, ("process_idx", self.core, self.number, "timestamp", self.value)))


_HARDWARE = ("trace_event_source", "neuron_hw")

SPAN_SOURCES = (
    # First, so that the few names of the many instructions get the smallest codes.
    SpanSource("Instruction", "engine", ("opcode",), texts=("timeline_track", "engine")),
    SpanSource("HostSpan", "host_thread", ("name",), core="", number="thread_idx",
               title="Thread {number}"),
    SpanSource("TraceSpan", "other", ("name",), core="", number="track_idx",
               title="Track {number}"),
    SpanSource("SystemProfileEvents", "runtime", ("name",), core="", texts=("trace_event_source",),
               number="thread_id", but_not=_HARDWARE, title="{text} thread {number}"),
    SpanSource("SystemProfileEvents", "execution", ("name",), core="nc_idx", only=_HARDWARE,
               title="Executions"),
    SpanSource("FrameworkInstruction", "framework", ("framework_name",), layers=True,
               title="Framework operations"),
    SpanSource("HloInstruction", "hlo", ("hlo_name",), title="HLO operations"),
    SpanSource("PenguinInstruction", "penguin", ("penguin_name",), title="Penguin"),
    SpanSource("BirInstruction", "bir", ("bir_name",), title="BIR"),
    SpanSource("DmaPacketAggregated", "dma_queue", ("variable", "op"), texts=("queue_name",)),
    SpanSource("DmaPacket", "dma_engine", ("variable",), number="engine_idx", title="DMA engine {number}"),
    # Below the transfers of each queue, which last from their first packet to their last.
    SpanSource("DmaPacket", "dma_queue", ("variable",), texts=("queue_name",), title="{text} packets",
               again="dma_packet"),
    SpanSource("CcOp", "collective", ("operation",), number="stream_index", title="Stream {number}"),
    SpanSource("CcInstruction", "collective_core", ("description",), number="core_idx",
               title="CC-core {number}"),
    SpanSource("Throttle", "throttle", ("type",), start="timestamp", end="", duration="duration",
               limit=("k", "n"), title="Throttling"),
)  # fmt: skip
"""Every table of spans. Several sources may share a table."""

COUNTER_SOURCES = (
    CounterSource("MfuUsage", "mfu", "MFU", "fraction"),
    CounterSource("HbmUsage", "current_throughput", "HBM bandwidth", "bytes/s"),
    CounterSource("DmaUsage", "current_throughput", "DMA bandwidth", "bytes/s"),
    CounterSource("PendingDma", "value", "Pending DMA", "transfers"),
    CounterSource("SbufUsage", "avg_util_percent", "SBUF use", "fraction"),
    CounterSource("PsumUsage", "avg_util_percent", "PSUM use", "fraction"),
    CounterSource("SystemProfileHbmUsage", "total_bytes", "HBM bytes", "bytes", core="device_idx"),
    CounterSource("CpuUsage", "util_percent", "CPU use", "fraction", core="", number="cpu_id"),
    CounterSource("HostMemUsage", "used_bytes", "Host memory", "bytes", core=""),
    CounterSource("TraceCounter", "value", "Counter", core="", number="track_idx"),
)
"""Every table of samples."""

TRACK_TABLES = tuple(dict.fromkeys(source.table for source in (*SPAN_SOURCES, *COUNTER_SOURCES)))
DESCRIBING_TABLES = ("ProcessInfo", "TraceTrack")
MODULE_LEVEL, COUNTER_LEVEL = "module", COUNTER
