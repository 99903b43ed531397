"""Records what JAX runs: its computations are simulated, XLA's CPU back end computes the values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from neuron_tools.capture.runtimes.published import PublishedRecording
from neuron_tools.capture.runtimes.runtime import Recording
from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.device.record import EVENTS_FILE

CPU_DEVICES_WARNING = (
    "JAX computed the values on its CPU devices, which jax.devices() shows; the times are those of the "
    "simulated device."
)


class JaxRuntime:
    """The runtime of a process that imports JAX."""

    def __init__(self) -> None:
        self._recorder: PythonRecorder | None = None
        self._published: PublishedRecording | None = None
        self._hooks: list[Callable[[], None]] = []

    def prepare(self) -> None:
        """Nothing has to be built."""

    def facts(self) -> Mapping[str, Any]:
        """JAX's version."""
        import jax

        return {"jax": jax.__version__}

    def start(self, recording: Recording) -> None:
        """Wrap JAX's execution, and record."""
        from neuron_tools.frontends.jax.annotations import Annotations
        from neuron_tools.frontends.jax.interception import Interception
        from neuron_tools.frontends.jax.memory import DeviceMemory
        from neuron_tools.frontends.jax.modules import ModuleScopes
        from neuron_tools.frontends.jax.transfers import Transfers

        recorder = self._recorder = _recorder(recording)
        self._published = PublishedRecording(recorder, recording, _count_cores)
        memory = DeviceMemory(recorder)
        interception = Interception(recorder, recording.store, memory)
        for hook in (interception, Transfers(recorder, memory), Annotations(recorder), ModuleScopes()):
            hook.install()
            self._hooks.append(hook.uninstall)
        recording.definitions.write("warning", message=CPU_DEVICES_WARNING, category="values")

    def stop(self) -> int:
        """Take the wrappers out and write what was recorded."""
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

    def _take_hooks_out(self) -> None:
        while self._hooks:
            self._hooks.pop()()


def _recorder(recording: Recording) -> PythonRecorder:
    import jax
    import jaxlib

    options = recording.options
    return PythonRecorder(
        recording.directory / EVENTS_FILE,
        recording.definitions.stack,
        recording.definitions.name,
        internal_folders=[os.path.dirname(jax.__file__), os.path.dirname(jaxlib.__file__)],
        launch_overhead_ns=round(recording.core.launch_overhead_ns),
        host_bytes_per_s=recording.core.host_link_bandwidth,
        host_latency_ns=round(recording.core.host_transfer_latency_ns),
        fixed_ns_per_dispatch=options.fixed_ns_per_dispatch if options.host_clock == "fixed" else None,
    )


def _count_cores() -> int:
    """JAX's devices; asked after something ran on one, so this starts nothing."""
    import jax

    return jax.local_device_count()
