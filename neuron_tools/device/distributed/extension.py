"""The C++ extension of the process group, loaded once."""

from __future__ import annotations

from functools import cache
from typing import Any

from neuron_tools.device.build import distributed_extension, load


@cache
def extension() -> Any:
    """The extension module, built on first use.

    Raises:
        DeviceBuildError: It cannot be built or loaded.
    """
    return load(distributed_extension())
