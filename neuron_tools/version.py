"""Which version of Neuron Tools runs."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def installed_version() -> str:
    """The installed distribution's version, e.g. "0.1.0"; "unknown" where it was not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("neuron-tools")
    except PackageNotFoundError:
        return "unknown"
