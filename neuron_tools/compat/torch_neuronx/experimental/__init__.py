"""`torch_neuronx.experimental`: on which NeuronCores traced models run."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from neuron_tools.frontends.torch_trace.placement import all_cores, on_cores, place

__all__ = [
    "multicore_context", "neuron_cores_context", "placement", "set_multicore", "set_neuron_cores",
]  # fmt: skip


def set_neuron_cores(trace: torch.nn.Module, start_nc: int = -1, nc_count: int = -1) -> None:
    """Let a model run on cores of this process, in turn where there are several.

    Args:
        trace: A traced model.
        start_nc: The first core; -1: core 0.
        nc_count: How many; -1: one.

    Raises:
        TraceError: One of them does not exist.
    """
    place(trace, _cores(start_nc, nc_count))


def set_multicore(trace: torch.nn.Module) -> None:
    """Let a model run on all cores of this process in turn."""
    place(trace, all_cores())


def neuron_cores_context(start_nc: int = -1, nc_count: int = -1) -> AbstractContextManager[None]:
    """Run traced models on cores of this process in the block, in turn where there are several.

    Args:
        start_nc: The first core; -1: core 0.
        nc_count: How many; -1: one.

    Raises:
        TraceError: One of them does not exist.
    """
    return on_cores(_cores(start_nc, nc_count))


def multicore_context() -> AbstractContextManager[None]:
    """Run traced models on all cores of this process in turn in the block."""
    return on_cores(all_cores())


def _cores(start: int, count: int) -> range:
    first = max(start, 0)
    return range(first, first + max(count, 1))


class placement:
    """The older place of the same names."""

    set_neuron_cores = staticmethod(set_neuron_cores)
    set_multicore = staticmethod(set_multicore)
    neuron_cores_context = staticmethod(neuron_cores_context)
    multicore_context = staticmethod(multicore_context)
