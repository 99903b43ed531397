"""Importers: one file per format, each recognised by its content; `import_traces` turns files into a profile.

Example:
    >>> from neuron_tools.profile.importers import import_traces
    >>> import_traces(["trace.json.gz"], "trace.nprof").formats
    {'trace.json.gz': 'torch.profiler'}
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuron_tools.profile.importers.errors import TraceError as TraceError
    from neuron_tools.profile.importers.import_profile import (
        ImportReport as ImportReport,
        import_traces as import_traces,
    )

_MODULE_OF = {"ImportReport": "import_profile", "TraceError": "errors", "import_traces": "import_profile"}

__all__ = ["ImportReport", "TraceError", "import_traces"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
