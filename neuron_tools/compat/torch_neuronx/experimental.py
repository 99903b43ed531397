"""`torch_neuronx.experimental`: on which NeuronCores traced models run."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from neuron_tools.frontends.torch_trace.placement import check_cores, on_core, place

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
    place(trace, range(torch.neuron.device_count()))


def neuron_cores_context(start_nc: int = -1, nc_count: int = -1) -> AbstractContextManager[None]:
    """Run traced models on a core in the block.

    Args:
        start_nc: The core; -1: core 0.
        nc_count: Cores that must be there from it on; -1: one.

    Raises:
        TraceError: One of them does not exist.
    """
    cores = _cores(start_nc, nc_count)
    check_cores(cores)
    return on_core(cores[0])


def multicore_context() -> AbstractContextManager[None]:
    """Run traced models on this process's cores, from the first on."""
    return on_core(0)


def _cores(start: int, count: int) -> range:
    first = max(start, 0)
    return range(first, first + max(count, 1))


class placement:
    """The older place of the same names."""

    set_neuron_cores = staticmethod(set_neuron_cores)
    set_multicore = staticmethod(set_multicore)
    neuron_cores_context = staticmethod(neuron_cores_context)
    multicore_context = staticmethod(multicore_context)
