"""The monitor's inner loops: the compiled ones where they could be built, else those in Python."""

from __future__ import annotations

from neuron_monitor.api.python_kernels import *  # noqa: F403

try:
    from neuron_monitor.api._kernels import *  # type: ignore[import-not-found]  # noqa: F403
except ImportError:
    pass
