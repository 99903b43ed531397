"""The version that nodes and reports name as the runtime's."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def version() -> str:
    """Of Neuron Tools; "unknown" where it was not installed."""
    from importlib.metadata import PackageNotFoundError, version as installed_version

    try:
        return installed_version("neuron-tools")
    except PackageNotFoundError:
        return "unknown"
