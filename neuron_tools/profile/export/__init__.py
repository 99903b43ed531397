"""Exporters: one file per format, each an `Export`: a function `export_X(profile, destination_path)`.

Imported lazily, so that naming this package costs nothing and a missing optional reader breaks only its own
format. Every exporter writes to a temporary name and renames at the end: a destination either holds the
whole export or is as it was.

Example:
    >>> from neuron_tools.profile.export import export_perfetto
    >>> export_perfetto(profile, "run.pftrace").counts["slices"]
    48211
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuron_tools.profile.export.chrome import export_chrome as export_chrome
    from neuron_tools.profile.export.csv import export_csv as export_csv
    from neuron_tools.profile.export.neuron_json import (
        export_neuron_json as export_neuron_json,
        export_system_json as export_system_json,
    )
    from neuron_tools.profile.export.parquet import export_parquet as export_parquet
    from neuron_tools.profile.export.perfetto import export_perfetto as export_perfetto
    from neuron_tools.profile.export.profile_slice import export_slice as export_slice
    from neuron_tools.profile.export.report import ExportReport as ExportReport, Progress as Progress
    from neuron_tools.profile.export.summary import (
        export_summary as export_summary,
        summary_metrics as summary_metrics,
    )

_MODULE_OF = {
    "ExportReport": "report",
    "Progress": "report",
    "export_chrome": "chrome",
    "export_csv": "csv",
    "export_neuron_json": "neuron_json",
    "export_parquet": "parquet",
    "export_perfetto": "perfetto",
    "export_slice": "profile_slice",
    "export_summary": "summary",
    "export_system_json": "neuron_json",
    "summary_metrics": "summary",
}

__all__ = [
    "ExportReport",
    "Progress",
    "export_chrome",
    "export_csv",
    "export_neuron_json",
    "export_parquet",
    "export_perfetto",
    "export_slice",
    "export_summary",
    "export_system_json",
    "summary_metrics",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
