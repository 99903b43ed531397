"""AWS's device profile JSON, as `neuron-profile view --output-format json` writes it, and its system profile.

The two share a module because one file may hold both: lists of a device (`instruction`, `dma`, ...) and lists
of the host (`trace_events`, `cpu_util`, ...). They go into the published tables.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.profile.importers.device_sections import SECTIONS
from neuron_tools.profile.importers.dma_transfers import TransferSums
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_document import JsonDocument
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.importers.recording import Clock, Process, Recording
from neuron_tools.profile.importers.sections import section_keys, stage_rows
from neuron_tools.profile.importers.system_events import EVENT_KEYS, SystemEvents
from neuron_tools.profile.importers.trace_file import TraceFile
from neuron_tools.profile.schema import SCHEMA_VERSION, TABLES

EVENT_LISTS = ("trace_events", "trace_event")
NAME = "AWS Neuron profile JSON"
YEAR_2001_NS = 1_000_000_000 * 1_000_000_000
"""Times above it can only be counted from 1970."""

_MARKS = frozenset(
    {"instruction", "semaphore_update", "dma", "neff_header", "layer_summary", "model_info", "profile_info",
     "active_time", "pending_dma", "dma_queues_info", "neff_node", "nc_mem_usage", "trace_events", "cpu_util",
     "mem_usage", "device_mem_usage", "summary_group_order", "instruction_usage", "dma_throughput"}
)  # fmt: skip
_PREDECESSOR = re.compile(r'"id":"?(-?\d{1,18}|[1-8]\d{18})\b')
_CLOCKS = ("vector_engine_clock_freq", "scalar_engine_clock_freq", "gpsimd_engine_clock_freq")
_CHANNELS = ("vector_engine_num_channels", "scalar_engine_num_channels", "gpsimd_engine_num_channels")


def recognise(head: Head) -> bool:
    """Whether the document is an object with lists of AWS's names."""
    return not head.is_list and bool(head.json_keys & _MARKS)


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the profile."""
    document = JsonDocument(file)
    reader, events = _Reader(recording), SystemEvents(recording)
    for key in document.members():
        sections = SECTIONS.get(key)
        if sections is not None and document.is_list():
            keys = section_keys(sections)
            for rows in document.objects(keys):
                for section in sections:
                    stage_rows(section, rows, recording)
                reader.add(key, rows)
        elif key in EVENT_LISTS and document.is_list():
            for rows in document.objects(EVENT_KEYS):
                events.add(rows)
        elif key in reader.SMALL:
            reader.add_small(key, document.value())
    reader.finish()
    recording.warn_all(document.damage.sentences())


class _Reader:
    """What of a file is no plain list of rows: dependencies, transfers of packets, summary and metadata."""

    SMALL = ("summary", "metadata", "warnings", "profile_info")

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._transfers = TransferSums()
        self._small: dict[str, list[dict[str, Any]]] = {}
        self._edges: list[tuple[int, int]] = []

    def add(self, key: str, rows: JsonRows) -> None:
        """Sees the rows of a list after they were staged."""
        if key == "dma":
            self._transfers.add(rows)
        elif key == "instruction":
            self._add_dependencies(rows)

    def add_small(self, key: str, value: Any) -> None:
        """Takes a short list of objects."""
        if isinstance(value, list):
            self._small[key] = [element for element in value if isinstance(element, dict)]

    def finish(self) -> None:
        recording = self._recording
        if not recording.row_counts.get("DmaPacketAggregated"):
            recording.append_if_any("DmaPacketAggregated", self._transfers.transfers())
        for warning in self._small.get("warnings", ()):
            recording.warn(str(warning.get("message", "")), str(warning.get("category", "")))
        if not recording.row_counts.get("Flow"):  # our own export tells them with their tables
            self._stage_dependencies()
        self._add_summary()
        self._add_metadata()
        self._add_processes()
        is_absolute = (recording.first_ns or 0) > YEAR_2001_NS
        if not is_absolute and (recording.first_ns or 0) >= 0:
            recording.first_ns = 0
        recording.clock = Clock(unix_ns=0 if is_absolute else None)

    def _add_dependencies(self, rows: JsonRows) -> None:
        lists = rows.json("predecessors").to_pylist()
        ids = rows.integers("id").to_pylist()
        self._edges += [
            (int(found), own)
            for own, text in zip(ids, lists)
            if text is not None and own is not None
            for found in _PREDECESSOR.findall(text)
        ]

    def _stage_dependencies(self) -> None:
        """Dependencies on rows that are in the file: instructions, or else DMA transfers."""
        if not self._edges:
            return
        before, after = (np.array(column, np.int64) for column in zip(*self._edges))
        self._edges.clear()
        is_instruction = np.isin(before, self._ids("Instruction"))
        is_known = is_instruction | np.isin(before, self._ids("DmaPacketAggregated"))
        lost = int(np.count_nonzero(~is_known))
        self._recording.warn(
            f"{lost:,} dependencies on rows that are not in the file were left out.", count=min(lost, 1)
        )
        tables = np.where(is_instruction, "Instruction", "DmaPacketAggregated")[is_known]
        own = pa.array(["Instruction"] * len(tables)).dictionary_encode()
        columns = {"in_id": pa.array(before[is_known]), "out_id": pa.array(after[is_known])}
        if len(tables):
            in_tables = pa.array(tables.tolist()).dictionary_encode()
            self._recording.append("Flow", {**columns, "in_table": in_tables, "out_table": own})

    def _ids(self, table: str) -> npt.NDArray[np.int64]:
        """Numbers of a table's staged rows."""
        parts = [batch.column("id").to_numpy() for batch in self._recording.staged(table)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _add_summary(self) -> None:
        for row in self._small.get("summary", ())[:1]:
            fields = TABLES["Summary"].by_name
            known = {name: _number(value, fields[name].type) for name, value in row.items() if name in fields}
            if known:
                missing = {name: None for name in TABLES["Summary"].column_names if name not in known}
                self._recording.summary = {**missing, **known}

    def _add_metadata(self) -> None:
        for row in self._small.get("metadata", ())[:1]:
            info = (self._small.get("profile_info") or [{}])[0]
            summary = (self._small.get("summary") or [{}])[0]
            given = {**summary, **info, **row}
            others, partitions = given.get("pe_clock_others"), given.get("pe_num_rows")
            given |= dict.fromkeys((*_CLOCKS, "neuroncore_clock_freq"), others)
            given |= dict.fromkeys(_CHANNELS, partitions)
            given |= {
                "tensor_engine_clock_freq": given.get("pe_clock_freq"),
                "tensor_engine_num_rows": partitions,
                "tensor_engine_num_cols": given.get("pe_num_cols"),
                "explorer_version": given.get("profiler_version"),
                "profile_schema_version": SCHEMA_VERSION,
            }
            columns = {
                field.name: _number(given.get(field.name), field.type, required=field.required)
                for field in TABLES["Metadata"].fields
                if field.name != "process_idx"
            }
            self._recording.append("Metadata", {name: pa.array([value]) for name, value in columns.items()})

    def _add_processes(self) -> None:
        info = (self._small.get("profile_info") or [{}])[0]
        name = info.get("profile_name")
        last = 0
        for table in ("Instruction", "DmaPacketAggregated", "SystemProfileEvents"):
            for batch in self._recording.staged(table):
                if "process_idx" in batch.schema.names and batch.num_rows:
                    last = max(last, int(np.max(batch.column("process_idx").to_numpy())))
        for _ in range(last + 1):
            self._recording.add_process(Process(name=name if isinstance(name, str) and name else None))


def _number(value: Any, kind: str, *, required: bool = False) -> Any:
    """A value of JSON as one of a column's type; None (or zero, where required) if it cannot be."""
    if kind == "string":
        return value if isinstance(value, str) else ("" if required else None)
    if kind == "bool":
        return value if isinstance(value, bool) else (False if required else None)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1 << 62:
        return 0 if required else None
    whole = int(value) if kind in ("int64", "int32") else float(value)
    return whole if kind != "int32" or abs(whole) < 1 << 31 else (0 if required else None)
