"""The monitor's inner loops: the compiled ones where they could be built, else those in Python."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from neuron_monitor.api import python_kernels
from neuron_monitor.api.python_kernels import *  # noqa: F403

with suppress(ImportError):
    _compiled = import_module("neuron_monitor.api._kernels")
    # Those that were built of an older source lack some, and may give something else.
    if all(hasattr(_compiled, name) for name in python_kernels.__all__):
        globals().update({name: getattr(_compiled, name) for name in python_kernels.__all__})
