"""The NeuronCores that JAX's devices stand for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=4096)
def core_of(device: Any) -> int:
    """The place of a device among those of all processes: JAX's own numbers leave gaps between processes."""
    return sorted(other.id for other in device.client.devices()).index(device.id)


def cores_of(devices: Iterable[Any]) -> list[int]:
    """The same of several, in ascending order."""
    return sorted(map(core_of, devices))
