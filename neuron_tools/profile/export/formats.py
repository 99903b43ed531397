"""The formats that profiles are written in, by name: each exporter's file tells its own."""

from __future__ import annotations

from collections.abc import Callable

from neuron_tools.doors import Door
from neuron_tools.frozen import frozen
from neuron_tools.profile.export.report import ExportReport


@frozen
class ExportFormat:
    """A format.

    Attributes:
        title: What people call it.
        suffix: End of the name of what is made.
        says: One sentence: what it is good for.
        export: `export(profile, destination, *, progress=None, force=False)` writes it.
        is_folder: Whether it makes a folder.
    """

    title: str
    suffix: str
    says: str
    export: Callable[..., ExportReport]
    is_folder: bool = False


_MODULES = {
    "perfetto": "perfetto", "chrome": "chrome", "json": "neuron_json", "parquet": "parquet", "csv": "csv",
    "summary-json": "summary",
}  # fmt: skip
FORMATS = Door(
    "neuron_tools.exporters",
    "export format",
    tuple((name, f"neuron_tools.profile.export.{module}:FORMAT") for name, module in _MODULES.items()),
)
"""Each an `ExportFormat`, in the order in which people meet them."""
