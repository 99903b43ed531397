"""`torch.classes.neuron`: the runtime, models for several ranks, and names for annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from neuron_tools.compat.absent import Absent
from neuron_tools.device import native
from neuron_tools.frontends.torch_trace import ranks as ranks  # registers what models for several ranks call
from neuron_tools.frontends.torch_trace.placement import check_cores, choose_cores
from neuron_tools.frontends.torch_trace.rank_models import load_rank

NAMES = ("LayoutTransformation", "Model", "ParallelModel", "SPMDBucketModel")
_ABSENT = Absent(
    "torch.ops.neuron._parallel_to_neuron",
    "transformers-neuronx builds HLO files for AWS's compiler; serve the model by "
    "neuronx-distributed-inference or torch_neuronx.trace.",
)
_library = torch.library.Library("neuron", "FRAGMENT")


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


def parallel_load(checkpoint: Sequence[Mapping[str, torch.Tensor]]) -> list[dict[str, torch.Tensor]]:
    """Put the weights of each rank on its core.

    Args:
        checkpoint: Weights of each rank, by name.

    Returns:
        The same on the cores.

    Raises:
        TraceError: There are too few cores.
    """
    check_cores(range(len(checkpoint)))
    return [
        {name: value.to(f"neuron:{rank}") for name, value in weights.items()}
        for rank, weights in enumerate(checkpoint)
    ]


def register() -> None:
    """Let the names be found."""
    native.register_ranked_model()
    if not hasattr(torch.ops.neuron, "_parallel_load"):
        _library.define("_parallel_load(Dict(str, Tensor)[] checkpoint) -> Dict(str, Tensor)[]")
        _library.impl("_parallel_load", parallel_load, "CompositeExplicitAutograd")
        _library.define("_parallel_to_neuron(Tensor[] tensors) -> Tensor[]")
        _library.impl("_parallel_to_neuron", _ABSENT, "CompositeExplicitAutograd")
        _library.define("_init_neuron() -> ()")
        _library.impl("_init_neuron", Runtime().initialize, "CompositeExplicitAutograd")
    torch.ops.neuron._load_collectives_neuron = load_rank
    torch.classes.neuron.Runtime = Runtime
    for name in NAMES:
        stand_in = Absent(f"torch.classes.neuron.{name}", "it runs AWS's own files; use torch_neuronx.trace.")
        setattr(torch.classes.neuron, name, stand_in)
