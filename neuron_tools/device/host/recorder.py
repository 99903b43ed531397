"""Records executions, waits and ranges of a program that does not use the PyTorch device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from neuron_tools.device.host.clock import HostClock
from neuron_tools.device.host.event_log import EventLog, Record
from neuron_tools.device.host.numbering import Numbering
from neuron_tools.device.host.stacks import OnStack, SourceStacks
from neuron_tools.device.host.timeline import DeviceTimeline
from neuron_tools.records.capture_log import RecordKind

OnExecute = Callable[[int, int, int, int], None]
"""Core, executable, time from dispatch to end in ns, time on the device in ns."""


class PythonRecorder:
    """One process's recording. Safe to use from several threads.

    Attributes:
        clock: The host's virtual time. Whoever computes values or simulates pauses it meanwhile.
        on_execute: Called with each execution that was placed.

    Args:
        path: The log, made of `neuron_tools.records.capture_log.RECORD_DTYPE` records.
        on_stack: Called once for each new source stack.
        on_name: Called once for each new name: number, text.
        internal_folders: Files below these are not the user's.
        launch_overhead_ns: What a NeuronCore adds before each execution.
        host_bytes_per_s, host_latency_ns: How long a copy between host and device takes: the latency, then
            the bytes at this rate (0: no time).
        fixed_ns_per_dispatch: For the fixed clock; None measures.

    Raises:
        OSError: The log cannot be made.
    """

    def __init__(
        self,
        path: Path,
        on_stack: OnStack,
        on_name: Callable[[int, str], None],
        *,
        internal_folders: Iterable[str] = (),
        launch_overhead_ns: int = 0,
        host_bytes_per_s: float = 0.0,
        host_latency_ns: int = 0,
        fixed_ns_per_dispatch: int | None = None,
    ) -> None:
        self._log = EventLog(path)
        self._stacks = SourceStacks(internal_folders, on_stack)
        self._names = Numbering(on_name)
        self._threads: dict[int, int] = {}
        self._lock = threading.Lock()
        self._timeline = DeviceTimeline(launch_overhead_ns)
        self._host_bytes_per_s = host_bytes_per_s
        self._host_latency_ns = host_latency_ns
        self.clock = HostClock(fixed_ns_per_dispatch)
        self.on_execute: OnExecute | None = None

    @property
    def record_count(self) -> int:
        """Records made so far."""
        return self._log.count

    @property
    def error(self) -> str | None:
        """Why writing the log stopped (a full disk, say), or None."""
        return self._log.error

    def name(self, text: str) -> int:
        """The number of a name; new ones are told to `on_name` first."""
        return self._names.number(text)

    def stack(self) -> int:
        """Number of the calling thread's stack."""
        return self._stacks.current()

    def execute(
        self, executable: int, duration_ns: int, name: str, cores: Sequence[int] = (0,),
        stack: int | None = None,
    ) -> int:  # fmt: skip
        """Place one execution on the cores, which start it together, and record it; returns when it ends.

        Args:
            executable: What ran; 0 = it is not known.
            duration_ns: Its device time.
            name: What to call it.
            cores: NeuronCores of this process.
            stack: Number of the stack that launched it; None: the calling thread's.
        """
        with self.clock.paused() as host_start_ns:
            host_ns = host_start_ns, self.clock.dispatch()
            device_ns = self._timeline.place(cores, host_ns[1], duration_ns)
            if stack is None:
                stack = self._stacks.current()
            for core in cores:
                self._record_execution(core, executable, host_ns, device_ns, stack, name)
        return device_ns[1]

    def execute_side_by_side(self, executions: Sequence[tuple[int, int]], name: str) -> int:
        """Place executions on cores 0, 1, 2, ... by one dispatch; returns when the last ends.

        Args:
            executions: (executable, device time in ns) of each core.
            name: What to call them.
        """
        finish_ns = 0
        with self.clock.paused() as host_start_ns:
            host_ns, stack = (host_start_ns, self.clock.dispatch()), self._stacks.current()
            for core, (executable, duration_ns) in enumerate(executions):
                device_ns = self._timeline.place((core,), host_ns[1], duration_ns)
                self._record_execution(core, executable, host_ns, device_ns, stack, name)
                finish_ns = max(finish_ns, device_ns[1])
        return finish_ns

    def _record_execution(
        self, core: int, executable: int, host_ns: tuple[int, int], device_ns: tuple[int, int], stack: int,
        name: str,
    ) -> None:  # fmt: skip
        record = self._record(RecordKind.GRAPH, *host_ns, stack, name)
        record.device, record.executable = core, executable
        record.device_start_ns, record.device_end_ns = device_ns
        self._log.append(record)
        if self.on_execute is not None:
            self.on_execute(core, executable, device_ns[1] - host_ns[0], device_ns[1] - device_ns[0])

    def wait(self, until_ns: int, cores: Sequence[int] = (0,)) -> None:
        """The host waits for the device: its clock moves to `until_ns`."""
        with self.clock.paused() as start_ns:
            self.clock.dispatch()
            self.clock.wait_until(until_ns)
            record = self._record(
                RecordKind.SYNCHRONIZE, start_ns, self.clock.now_ns(), self._stacks.current(), ""
            )
            record.device = cores[0]
            self._log.append(record)

    def copy_to_device(self, byte_count: int, core: int = 0) -> int:
        """Record a copy from the host, which goes on meanwhile; returns when the data is there."""
        with self.clock.paused() as host_start_ns:
            host_end_ns = self.clock.dispatch()
            times = self._timeline.place((core,), host_end_ns, self._copy_ns(byte_count), is_copy=True)
            self._record_copy(RecordKind.COPY_TO_DEVICE, host_start_ns, host_end_ns, times, byte_count, core)
        return times[1]

    def copy_to_host(self, byte_count: int, core: int = 0) -> None:
        """Record a copy to the host, which waits for it."""
        with self.clock.paused() as host_start_ns:
            times = self._timeline.place(
                (core,), self.clock.dispatch(), self._copy_ns(byte_count), is_copy=True
            )
            self.clock.wait_until(times[1])
            self._record_copy(
                RecordKind.COPY_TO_HOST, host_start_ns, self.clock.now_ns(), times, byte_count, core
            )

    def memory(
        self, byte_count: int, address: int, core: int, *, freed: bool = False, stack: int | None = None,
        name: str = "",
    ) -> None:  # fmt: skip
        """Record that a core's memory was taken or given back.

        Args:
            stack: What took it; None: the calling thread's.
            name: Of the operation that took it.
        """
        with self.clock.paused() as now_ns:
            kind = RecordKind.FREE if freed else RecordKind.ALLOCATE
            if freed or stack is None:
                stack = 0 if freed else self._stacks.current()
            record = self._record(kind, now_ns, now_ns, stack, name)
            record.device, record.byte_count, record.address = core, byte_count, address
            self._log.append(record)

    def _copy_ns(self, byte_count: int) -> int:
        if not self._host_bytes_per_s:
            return 0
        return self._host_latency_ns + round(byte_count / self._host_bytes_per_s * 1e9)

    def _record_copy(
        self, kind: RecordKind, start_ns: int, end_ns: int, device_ns: tuple[int, int], byte_count: int,
        core: int,
    ) -> None:  # fmt: skip
        record = self._record(kind, start_ns, end_ns, self._stacks.current(), "")
        record.device, record.byte_count = core, byte_count
        record.device_start_ns, record.device_end_ns = device_ns
        self._log.append(record)

    def finish_ns(self, cores: Sequence[int]) -> int:
        """When all that was placed on the cores is done."""
        return self._timeline.finish_ns(cores)

    def range(self, name: str, start_ns: int, end_ns: int, kind: RecordKind = RecordKind.RANGE) -> None:
        """Record a closed host range (RANGE or STEP)."""
        with self.clock.paused():
            self._log.append(self._record(kind, start_ns, end_ns, self._stacks.current(), name))

    def flush(self) -> None:
        """Write what was recorded so far."""
        self._log.flush()

    def close(self) -> None:
        """End the recording; what was recorded is written when this returns."""
        self._log.close()

    def abandon(self) -> None:
        """End the recording without writing anything more."""
        self._log.abandon()

    def _record(self, kind: RecordKind, start_ns: int, end_ns: int, stack: int, name: str) -> Record:
        record = Record(int(kind), host_start_ns=start_ns, host_end_ns=end_ns, stack=stack)
        record.thread = self._thread()
        record.name = self.name(name) if name else 0
        return record

    def _thread(self) -> int:
        identity = threading.get_ident()
        number = self._threads.get(identity)
        if number is None:
            with self._lock:
                number = self._threads.setdefault(identity, len(self._threads))
        return number
