"""`libneuronxla` where AWS's package is absent: what training scripts call of the runtime's plugin."""

from __future__ import annotations

from collections.abc import Callable

from neuron_tools.compat.absent import names_of

__all__ = ["register_hlo_snapshot_callback"]


def register_hlo_snapshot_callback(callback: Callable[[str, int, int], str]) -> None:
    """Accepted for compatibility: no snapshot is written; `neuron-profile capture` records every graph."""


__getattr__ = names_of(__name__, "AWS's compiler works on files of its own there; use torch_neuronx.trace.")
