"""Records what JAX runs: its computations are simulated, XLA's CPU back end computes the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.runtimes.python_runtime import PythonRuntime
from neuron_tools.capture.runtimes.runtime import Recording

CPU_DEVICES_WARNING = (
    "JAX computed the values on its CPU devices, which jax.devices() shows; the times are those of the "
    "simulated device."
)


class JaxRuntime(PythonRuntime):
    """The runtime of a process that imports JAX."""

    def __init__(self) -> None:
        super().__init__()
        self._definitions: DefinitionsWriter | None = None

    def facts(self) -> Mapping[str, Any]:
        """JAX's version."""
        import jax

        return {"jax": jax.__version__}

    def start(self, recording: Recording) -> None:
        """Wrap JAX's execution, and record."""
        import jax
        import jaxlib

        from neuron_tools.frontends.jax.annotations import Annotations
        from neuron_tools.frontends.jax.interception import Interception
        from neuron_tools.frontends.jax.memory import DeviceMemory
        from neuron_tools.frontends.jax.modules import ModuleScopes
        from neuron_tools.frontends.jax.transfers import Transfers

        folders = [folder for package in (jax, jaxlib) for folder in package.__path__]
        # The devices are counted after something ran on one: counting them starts nothing.
        recorder = self._record(recording, internal_folders=folders, count_cores=jax.local_device_count)
        memory = DeviceMemory(recorder)
        interception = Interception(recorder, recording.store, memory)
        for hook in (interception, Transfers(recorder, memory), Annotations(recorder), ModuleScopes()):
            hook.install()
            self._undo.append(hook.uninstall)
        self._definitions = recording.definitions

    def stop(self) -> int:
        """Take the hooks out and write what was recorded, with where values came from if JAX ran anything."""
        if self.record_count and self._definitions is not None:
            self._definitions.write("warning", message=CPU_DEVICES_WARNING, category="values")
        return super().stop()
