"""Turns one process's log into rows of the profile, block by block."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.capture import host_rows
from neuron_tools.capture.attribution import Attribution, LoggedExecution, Origin
from neuron_tools.capture.clock import CaptureClock
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.device_memory import DeviceMemory
from neuron_tools.capture.executions import Execution, ExecutionTables
from neuron_tools.capture.host_samples.main_calls import CallPlaces, MainCalls
from neuron_tools.capture.host_samples.rows import host_sample_rows
from neuron_tools.capture.process_log import ProcessLog
from neuron_tools.capture.replicas import replica_process_row
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.table_template import ExecutionOrigin
from neuron_tools.capture.tables.executables import executable_row, tensor_rows
from neuron_tools.capture.tables.execution_information import ExecutionInformation
from neuron_tools.capture.tables.kernels import kernel_tables
from neuron_tools.capture.tables.origin import callers, execution_origin
from neuron_tools.capture.tables.rank_collectives import Meetings, RankCollectives
from neuron_tools.hardware import NeuronCore
from neuron_tools.profile.writer import ProfileWriter
from neuron_tools.records.capture_log import RecordKind
from neuron_tools.records.executable import Executable

BLOCK_RECORDS = 8192
PROCESS_ID_SHIFT = 48  # ids of process n start at n << 48
EVENT_ID_BIT = 1 << 47  # ids of SystemProfileEvents rows stand apart
FUSED_OPERATION, FUSED, ALLOCATE = (
    int(kind) for kind in (RecordKind.FUSED_OPERATION, RecordKind.FUSED, RecordKind.ALLOCATE)
)
FOLLOWED_KINDS = (int(RecordKind.OPERATION), int(RecordKind.GRAPH), FUSED_OPERATION, FUSED, ALLOCATE)
HOST_TIMES, DEVICE_TIMES = ("host_start_ns", "host_end_ns"), ("device_start_ns", "device_end_ns")


class ProcessAssembler:
    """Follows one process's log and appends its rows to the profile, those of instructions where wanted.

    Attributes:
        executions: How many executions have been written.
    """

    def __init__(
        self,
        log: ProcessLog,
        process_idx: int,
        core: NeuronCore,
        writer: ProfileWriter,
        stacks: StackRegistry,
        clock: CaptureClock,
        meetings: Meetings,
        *,
        with_instructions: bool = True,
    ) -> None:
        self.log = log
        self.process_idx = process_idx
        self.executions = 0
        self._writer = writer
        self._stacks = stacks
        self._clock = clock
        self._logical_core_size = core.logical_core_size
        self._offset_ns: int | None = None
        self._warned_of_damage = False
        first_id = process_idx << PROCESS_ID_SHIFT
        self._tables = ExecutionTables(
            core, process_idx, first_id, stacks, with_instructions=with_instructions
        )
        self._information = ExecutionInformation(process_idx, core.logical_core_size)
        self._attribution = Attribution()
        self._fused_origins: list[Origin] = []
        self._collectives = RankCollectives(process_idx, first_id, stacks, meetings)
        self._main_calls = MainCalls()
        self._pools = {"HostSpan": TextPools(), "SystemProfileEvents": TextPools()}
        self._memory: DeviceMemory | None = None
        self._known_origins: dict[Origin, ExecutionOrigin] = {}
        self._tensors_written = self._calls_written = 0
        self._next_event_id = first_id | EVENT_ID_BIT
        self._missing: set[int] = set()
        self._executables: dict[int, Executable] = {}
        self._counts: Counter[int] = Counter()
        self._warnings_written = 0
        self._end_ns = 0

    def advance(self, *, whole_blocks_only: bool) -> bool:
        """Write the next block of records.

        Args:
            whole_blocks_only: Leave a block that is not full yet for later.

        Returns:
            Whether there was something to write.
        """
        if whole_blocks_only and self.log.pending() < BLOCK_RECORDS:
            return False
        records = self.log.read(BLOCK_RECORDS)
        if not len(records):
            self._write_warnings()
            return False
        records = self._shifted(records)
        self._write_host(records)
        origins = self._write_executions(records)
        self._write_memory(records, origins)
        self._write_collectives(records)
        self._write_stacks()
        self._write_warnings()
        return True

    def process_row(self, exit_status: int | None) -> dict[str, list[Any]]:
        """The ProcessInfo row.

        Args:
            exit_status: None where it is not known.
        """
        process = self.log.definitions.process
        return {
            "process_idx": [self.process_idx],
            "process_id": [process.process_id],
            "command": [shlex.join(process.command)],
            "start_unix_ns": [process.start_unix_ns],
            "exit_status": [exit_status],
            "rank": [process.rank],
            "host": [process.host or None],
            "clock_offset_ns": [self._offset_ns],
        }

    def replica_rows(self) -> list[dict[str, list[Any]]]:
        """ProcessInfo rows of the ranks that this one stands for."""
        row, replicas = self.process_row(None), self._collectives.replicas
        if self.log.definitions.process.rank is None:
            return []
        running = self._collectives.running
        return [replica_process_row(row, replica, running) for replica in range(1, replicas)]

    @property
    def replication(self) -> tuple[int, int]:
        """Ranks of the job that ran, and how many times they are simulated."""
        return self._collectives.running, self._collectives.replicas

    @property
    def _first_core(self) -> int:
        return self.log.definitions.process.first_core

    def _shifted(self, records: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
        """Records on the capture's clock instead of the process's own.

        Nothing stands before 0: a range is told when it ends, so that it may have begun before the first
        thing told, and is cut there; another thread's device work of that moment is moved there.
        """
        if self._offset_ns is None:
            process = self.log.definitions.process
            first_ns = int(records["host_end_ns"][0])
            self._offset_ns = self._clock.offset_ns(
                process.start_unix_ns, first_ns, is_rank=process.rank is not None
            )
        shifted: npt.NDArray[np.void] = records.copy()
        for column in HOST_TIMES:
            shifted[column] = np.maximum(shifted[column] + self._offset_ns, 0)
        on_device = records["device_end_ns"] > 0
        offset_ns = np.maximum(self._offset_ns, -records["device_start_ns"][on_device])
        for column in DEVICE_TIMES:
            shifted[column][on_device] += offset_ns
        collective = records["kind"] == int(RecordKind.COLLECTIVE)
        shifted["address"][collective] += self._offset_ns
        return shifted

    def _write_host(self, records: npt.NDArray[np.void]) -> None:
        definitions, process = self.log.definitions, self.log.definitions.process
        self._main_calls.add(records)
        pools = self._pools["HostSpan"]
        spans = host_rows.host_spans(records, definitions, self.process_idx, pools, self._stacks)
        self._writer.append("HostSpan", spans)
        events = host_rows.system_events(
            records,
            definitions,
            self.process_idx,
            process.process_id,
            self._first_core,
            self._next_event_id,
            self._pools["SystemProfileEvents"],
            self._logical_core_size,
        )
        self._next_event_id += (1 + self._logical_core_size) * len(records)
        self._writer.append("SystemProfileEvents", events)

    def _write_memory(self, records: npt.NDArray[np.void], origins: Sequence[ExecutionOrigin]) -> None:
        definitions = self.log.definitions
        if self._memory is None:
            self._memory = DeviceMemory(
                self.process_idx, self._first_core, self.log.held_bytes, self._logical_core_size
            )
        for table, columns in self._memory.tables(records, origins, definitions).items():
            self._writer.append(table, columns)
        names = definitions.tensors[self._tensors_written :]
        self._tensors_written += len(names)
        self._writer.append("TensorName", self._memory.name_rows(names))
        calls = definitions.module_calls[self._calls_written :]
        self._calls_written += len(calls)
        self._writer.append("ModuleCall", _call_rows(calls, self.process_idx))

    def _write_executions(self, records: npt.NDArray[np.void]) -> list[ExecutionOrigin]:
        """Write what ran; where each of the block's ALLOCATE records comes from."""
        executions: list[Execution] = []
        ends_ns: list[int] = []
        allocated = []
        for record in LoggedExecution.of(records[np.isin(records["kind"], FOLLOWED_KINDS)]):
            if record.kind == ALLOCATE:
                allocated.append(self._execution_origin(self._attribution.passive_origin(record)))
                continue
            origins = self._origins(record)
            if origins and record.executable and self._is_known(record.executable):
                executions.append(self._execution(record, origins))
                ends_ns.append(record.device_end_ns)
        for block in self._tables.blocks(executions):
            for name, columns in self._tables.rows(block).items():
                self._writer.append(name, columns)
        if executions:
            info = self._information.rows(executions, ends_ns, self._executables)
            self._writer.append("ExecutionInfo", info)
        self._counts.update(execution.executable for execution in executions)
        self.executions += len(executions)
        self._end_ns = max(self._end_ns, int(records["device_end_ns"].max()))
        return allocated

    def _origins(self, record: LoggedExecution) -> list[Origin]:
        """Where an execution was asked for; nothing yet for an operation that ran in a later record's."""
        if record.kind == FUSED:
            origins, self._fused_origins = self._fused_origins, []
            # The log may begin in the middle of them.
            return (origins or [self._attribution.origin(record)])[-record.address :]
        origin = self._attribution.origin(record)
        if record.kind == FUSED_OPERATION:
            self._fused_origins.append(origin)
            return []
        return [origin]

    def _write_collectives(self, records: npt.NDArray[np.void]) -> None:
        definitions = self.log.definitions
        rows = self._collectives.rows(
            records, definitions, self._attribution, self._first_core, self._logical_core_size
        )
        for columns in rows:
            self._writer.append("CcOp", columns)
            self._end_ns = max(self._end_ns, int(columns["end_ts"].max()))

    def write_host_samples(self) -> None:
        """Write what the process's threads did, where they were sampled and it used the device."""
        if self._offset_ns is None:
            return
        calls = CallPlaces(self._main_calls, self.log.definitions.stacks)
        directory = self.log.directory
        for rows in host_sample_rows(directory, self.process_idx, self._offset_ns, self._stacks, calls):
            self._writer.append("HostSample", rows)
        self._write_stacks()

    def executable_rows(self) -> list[dict[str, list[Any]]]:
        """The Executable rows, with how often each ran."""
        return [
            executable_row(executable, self.process_idx, self._counts[number])
            for number, executable in self._executables.items()
        ]

    @property
    def executables(self) -> tuple[Executable, ...]:
        """What was executed at least once."""
        return tuple(self._executables.values())

    @property
    def end_ns(self) -> int:
        """Device time at which the last execution ended."""
        return self._end_ns

    def _execution(self, record: LoggedExecution, origins: list[Origin]) -> Execution:
        return Execution(
            record.executable,
            record.device_start_ns,
            record.device + self._first_core,
            tuple(map(self._execution_origin, origins)),
        )

    def _execution_origin(self, origin: Origin) -> ExecutionOrigin:
        found = self._known_origins.get(origin)
        if found is None:
            definitions = self.log.definitions
            module = definitions.modules.get(origin.module)
            stack, path = definitions.stacks.get(origin.stack, ()), module.path if module else ""
            stack = (*stack, *callers(stack, definitions.stacks.get(origin.caller, ())))
            found = execution_origin(
                stack, path, self._stacks.leaf, backward=origin.backward, recomputed=origin.recomputed
            )
            self._known_origins[origin] = found
        return found

    def _is_known(self, number: int) -> bool:
        if self._tables.knows(number):
            return True
        if number in self._missing:
            return False
        executable = self.log.executable(number)
        if executable is None:
            self._missing.add(number)
            self._warn(f"Executable {number} is missing from the log: its executions have no rows.", "log")
            return False
        self._tables.add(executable)
        self._executables[number] = executable
        if executable.kind == "graph":
            self._writer.append("TensorInfo", tensor_rows(executable, self.process_idx))
        for table, columns in kernel_tables(executable, self.process_idx).items():
            self._writer.append(table, columns)
        for message in executable.program.warnings:
            self._warn(message, "compiler")
        return True

    def _write_stacks(self) -> None:
        for table, rows in self._stacks.take_rows().items():
            self._writer.append(table, {name: [row[name] for row in rows] for name in rows[0]})

    def _write_warnings(self) -> None:
        warnings = self.log.definitions.warnings
        for message, category in warnings[self._warnings_written :]:
            self._warn(message, category)
        self._warnings_written = len(warnings)
        if self.log.damaged and not self._warned_of_damage:
            self._warned_of_damage = True
            self._warn("Damaged records of the capture log were left out.", "log")

    def _warn(self, message: str, category: str) -> None:
        row = {"message": [message], "category": [category], "process_idx": [self.process_idx]}
        self._writer.append("Warning", row)


def _call_rows(calls: Sequence[tuple[str, str]], process_idx: int) -> dict[str, Any]:
    """Rows of ModuleCall."""
    return {
        "layer": ["/" + path.replace(".", "/") for path, _ in calls],
        "call": [text for _, text in calls],
        "process_idx": [process_idx] * len(calls),
    }
