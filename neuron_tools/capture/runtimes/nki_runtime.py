"""Records what NKI kernels run on NumPy arrays: Programs are simulated, NumPy computes the values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from neuron_tools.capture.runtimes.python_runtime import PythonRuntime
from neuron_tools.capture.runtimes.runtime import Recording


class NkiRuntime(PythonRuntime):
    """The runtime of a process that calls NKI kernels without a framework."""

    def facts(self) -> Mapping[str, Any]:
        """NumPy's version, and the NeuronCore that the first kernel of this process runs on."""
        import numpy

        from neuron_tools.device.driver.cores import first_core

        return {"numpy": numpy.__version__, "first_core": first_core(1)}

    def start(self, recording: Recording) -> None:
        """Listen to kernel calls, and record."""
        from neuron_tools.frontends.nki.recording import KernelRecording
        from neuron_tools.nki.target import set_core

        set_core(recording.core)
        self._undo.append(partial(set_core, None))
        kernels = KernelRecording(self._record(recording), recording.store)
        kernels.install()
        self._undo.append(kernels.uninstall)
