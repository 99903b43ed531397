"""Records what NKI kernels run on NumPy arrays: Programs are simulated, NumPy computes the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neuron_tools.capture.runtimes.published import PublishedRecording
from neuron_tools.capture.runtimes.runtime import Recording
from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.device.record import EVENTS_FILE

if TYPE_CHECKING:
    from neuron_tools.frontends.nki.recording import KernelRecording


class NkiRuntime:
    """The runtime of a process that calls NKI kernels without a framework."""

    def __init__(self) -> None:
        self._recorder: PythonRecorder | None = None
        self._published: PublishedRecording | None = None
        self._recording: KernelRecording | None = None

    def prepare(self) -> None:
        """Nothing has to be built."""

    def facts(self) -> Mapping[str, Any]:
        """NumPy's version."""
        import numpy

        return {"numpy": numpy.__version__}

    def start(self, recording: Recording) -> None:
        """Listen to kernel calls, and record."""
        from neuron_tools.frontends.nki.recording import KernelRecording
        from neuron_tools.nki.target import set_core

        set_core(recording.core)
        options = recording.options
        recorder = self._recorder = PythonRecorder(
            recording.directory / EVENTS_FILE,
            recording.definitions.stack,
            recording.definitions.name,
            launch_overhead_ns=round(recording.core.launch_overhead_ns),
            fixed_ns_per_dispatch=options.fixed_ns_per_dispatch if options.host_clock == "fixed" else None,
        )
        self._published = PublishedRecording(recorder, recording)
        self._recording = KernelRecording(recorder, recording.store)
        self._recording.install()

    def stop(self) -> int:
        """Listen no longer and write what was recorded."""
        self._leave()
        if self._recorder is None:
            return 0
        end_ns = self._recorder.clock.now_ns()
        if self._published is not None:
            self._published.end()
        self._recorder.close()
        return end_ns

    def abandon(self) -> None:
        """Stop without writing."""
        self._leave()
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

    def _leave(self) -> None:
        from neuron_tools.nki.target import set_core

        set_core(None)
        if self._recording is not None:
            self._recording.uninstall()
            self._recording = None
