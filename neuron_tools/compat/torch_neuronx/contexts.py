"""`torch_neuronx.contexts`: when compiled models are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neuron_tools.compat.absent import names_of

__all__ = ["disable_nrt_load"]


@contextmanager
def disable_nrt_load() -> Iterator[None]:
    """Accepted for compatibility: models are loaded at their first call."""
    yield


__getattr__ = names_of(__name__, "AWS's compiler works on files of its own there; use torch_neuronx.trace.")
