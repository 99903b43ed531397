"""The C++ core of the `neuron` device, typed and documented: the only place that loads the library."""

from __future__ import annotations

from typing import Any

from neuron_tools.device.build import load

_core: Any = None


def core() -> Any:
    """The extension module, built on first use."""
    global _core
    if _core is None:
        _core = load()
    return _core


def set_memory_limit(limit_bytes: int) -> None:
    """Device memory of each NeuronCore in bytes; 0 means no limit. Default: `$NEURON_TOOLS_HBM_BYTES`."""
    core().set_memory_limit(limit_bytes)


def memory_limit() -> int:
    """The limit that `set_memory_limit` set, in bytes; 0 means none."""
    return int(core().memory_limit())
