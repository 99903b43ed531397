"""The monitor's inner loops: the compiled ones where they could be built, else those in Python."""

from __future__ import annotations

from neuron_monitor.api import python_kernels
from neuron_monitor.api.python_kernels import *  # noqa: F403

try:
    from neuron_monitor.api import _kernels  # type: ignore[attr-defined,unused-ignore]
except ImportError:
    pass
else:
    # Those that were built of an older source lack some, and may give something else.
    if all(hasattr(_kernels, name) for name in python_kernels.__all__):
        from neuron_monitor.api._kernels import *  # type: ignore[import-not-found,unused-ignore]  # noqa: F403
