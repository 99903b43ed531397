"""`torch.classes.neuron`: the runtime, and names of other classes, which libraries use in annotations."""

from __future__ import annotations

import torch

from neuron_tools.compat.absent import Absent
from neuron_tools.frontends.torch_trace.placement import choose_cores

NAMES = ("LayoutTransformation", "Model", "ParallelModel", "SPMDBucketModel", "SPMDModel")


class Runtime:
    """Where models run from now on."""

    def initialize(self) -> None:
        """Accepted for compatibility: the runtime starts with its first use."""

    def unsafe_close(self) -> None:
        """Accepted for compatibility: the runtime ends with the process."""

    def set_default_neuron_cores(self, start_nc: int, nc_count: int) -> None:
        """Run traced models on cores of this process, in turn where there are several.

        Args:
            start_nc: The first core.
            nc_count: How many.

        Raises:
            TraceError: One of them does not exist.
        """
        choose_cores(range(start_nc, start_nc + nc_count))


def register() -> None:
    """Let the names be found."""
    torch.classes.neuron.Runtime = Runtime
    for name in NAMES:
        stand_in = Absent(f"torch.classes.neuron.{name}", "it runs AWS's own files; use torch_neuronx.trace.")
        setattr(torch.classes.neuron, name, stand_in)
