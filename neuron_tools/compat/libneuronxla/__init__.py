"""`libneuronxla` where AWS's package is absent: what training scripts call of the runtime's plugin."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["register_hlo_snapshot_callback"]


def register_hlo_snapshot_callback(callback: Callable[[str, int, int], str]) -> None:
    """Accepted for compatibility: no snapshot is written; `neuron-profile capture` records every graph."""
