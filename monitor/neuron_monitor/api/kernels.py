"""The monitor's inner loops: the compiled ones where they could be built, else those in Python."""

from __future__ import annotations

import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from neuron_monitor.api import python_kernels
from neuron_monitor.api.python_kernels import *  # noqa: F403  # the same names, without the compiled ones

_SOURCE = Path(__file__).with_name("_kernels.c")


def is_built_of(compiled: ModuleType, source: Path) -> bool:
    """Whether compiled loops are those of a source; True where there is only what was built of it."""
    try:
        text = source.read_bytes()
    except OSError:
        return True
    return getattr(compiled, "_source", None) == zlib.crc32(text)


are_outdated = False
"""Whether there are compiled loops of another source: they may give something else, and are not used."""

with suppress(ImportError):
    _compiled = import_module("neuron_monitor.api._kernels")
    are_outdated = not is_built_of(_compiled, _SOURCE)
    if not are_outdated:
        globals().update({name: getattr(_compiled, name) for name in python_kernels.__all__})
