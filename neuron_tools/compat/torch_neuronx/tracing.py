"""`torch_neuronx.trace`: a model compiled ahead of time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from neuron_tools.compiler.flags import parse_flags
from neuron_tools.frontends import torch_trace
from neuron_tools.frontends.torch_trace.segments import SegmentRules

from .utils import get_platform_target

OTHERWISE = "trn2"
"""What is compiled for where the chip is Inferentia 1, which this package is not for."""


@dataclass(frozen=True)
class PartitionerConfig:
    """What of a model is left to the CPU, where something shall be.

    Attributes:
        trace_kwargs: Accepted for compatibility; changes nothing.
        model_support_percentage_threshold: Likewise.
        min_subgraph_size: Operations below which a piece is left to the CPU.
        max_subgraph_count: How many pieces may run on the device; -1 means any number.
        ops_to_partition: Names of operators that run on the CPU, e.g. {"aten::embedding"}.
    """

    trace_kwargs: Mapping[str, Any] | None = None
    model_support_percentage_threshold: float = 0.5
    min_subgraph_size: int = -1
    max_subgraph_count: int = -1
    ops_to_partition: Collection[str] = field(default_factory=tuple)

    @property
    def rules(self) -> SegmentRules:
        """The same as the tracer has it."""
        return SegmentRules(
            host_operators=tuple(self.ops_to_partition),
            smallest=max(self.min_subgraph_size, 1),
            most=None if self.max_subgraph_count < 0 else self.max_subgraph_count,
        )


def trace(
    func: Callable[..., Any],
    example_inputs: torch.Tensor | tuple[torch.Tensor, ...],
    *_: Any,
    input_output_aliases: Mapping[torch.Tensor, int] | None = None,
    compiler_workdir: str | None = None,
    compiler_args: str | Sequence[str] | None = None,
    partitioner_config: PartitionerConfig | None = None,
    inline_weights_to_neff: bool = True,
    cpu_backend: bool = False,
) -> torch.jit.ScriptModule:
    """Compile a model for inference on the device.

    Args:
        func: Module or function of tensors.
        example_inputs: Inputs of the shapes and types that it will be called with.
        input_output_aliases: Parameters or buffers that are states -> which result, counted flat, is the next
            value of each. They stay on the device from call to call. In this order they are the traced
            model's parameters, and it returns them in the places of their next values.
        compiler_workdir: Folder that gets the compiled archive, `graph.neff`.
        compiler_args: Options of the compiler; those of `NEURON_CC_FLAGS` stand before them.
        partitioner_config: What is left to the CPU; without it the whole model runs on the device.
        inline_weights_to_neff: Keep the weights in the archive; otherwise `replace_weights` may change them.
        cpu_backend: Accepted for compatibility; no chip is ever needed.

    Returns:
        A TorchScript module; `torch.jit.save` keeps it, `torch.jit.load` needs this package imported.

    Raises:
        TraceError: The model cannot be traced.
        UsageError: A compiler option has a value that does not exist.
    """
    flags = parse_flags(compiler_args or (), with_environment=True)
    rules = SegmentRules(whole=True) if partitioner_config is None else partitioner_config.rules
    options = torch_trace.TraceOptions(
        target=flags.target or _present(),
        compiler=flags.options,
        rules=rules,
        folder=Path(compiler_workdir) if compiler_workdir else None,
        weights_apart=not inline_weights_to_neff,
        cache_folder=flags.cache_directory,
        lnc=flags.lnc,
        states=input_output_aliases or {},
    )
    return torch_trace.trace(func, example_inputs, options)


def _present() -> str:
    """The chip that is there, as AWS's compiler takes it."""
    present = get_platform_target()
    return OTHERWISE if present == "inf1" else present
