"""What the runtimes share whose program does not use the PyTorch device: a recorder in Python, and hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from neuron_tools.capture.runtimes.published import PublishedRecording
from neuron_tools.capture.runtimes.runtime import Recording
from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.records.capture_log import EVENTS_FILE


class PythonRuntime:
    """Records by hooks in the program's own libraries; nothing has to be built."""

    def __init__(self) -> None:
        self._recorder: PythonRecorder | None = None
        self._published: PublishedRecording | None = None
        self._undo: list[Callable[[], None]] = []

    def prepare(self) -> None:
        """Nothing has to be built."""

    def stop(self) -> int:
        """Take the hooks out and write what was recorded."""
        self._take_hooks_out()
        if self._recorder is None:
            return 0
        end_ns = self._recorder.clock.now_ns()
        if self._published is not None:
            self._published.end()
        self._recorder.close()
        return end_ns

    def abandon(self) -> None:
        """Stop without writing."""
        self._take_hooks_out()
        if self._recorder is not None:
            self._recorder.abandon()
        if self._published is not None:
            self._published.abandon()

    @property
    def error(self) -> str | None:
        """Why writing the log stopped."""
        return self._recorder.error if self._recorder else None

    @property
    def record_count(self) -> int:
        """Records made."""
        return self._recorder.record_count if self._recorder else 0

    def _record(
        self,
        recording: Recording,
        *,
        internal_folders: Sequence[str] = (),
        count_cores: Callable[[], int] = lambda: 1,
        published: bool = True,
    ) -> PythonRecorder:
        """Begin the log.

        Args:
            recording: Where the log goes, and the options.
            internal_folders: Folders whose frames are the framework's and not the user's.
            count_cores: How many cores the process sees; asked when one first runs something.
            published: Whether the simulated driver's tree shows what is recorded.
        """
        options, core = recording.options, recording.core
        recorder = self._recorder = PythonRecorder(
            recording.directory / EVENTS_FILE,
            recording.definitions.stack,
            recording.definitions.name,
            internal_folders=internal_folders,
            launch_overhead_ns=round(core.launch_overhead_ns),
            host_bytes_per_s=core.host_link_bandwidth,
            host_latency_ns=round(core.host_transfer_latency_ns),
            fixed_ns_per_dispatch=options.fixed_ns_per_dispatch if options.host_clock == "fixed" else None,
        )
        if published:
            self._published = PublishedRecording(recorder, recording, count_cores)
        return recorder

    def _take_hooks_out(self) -> None:
        while self._undo:
            self._undo.pop()()
