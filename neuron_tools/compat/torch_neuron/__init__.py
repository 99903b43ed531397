"""`torch_neuron` (Inferentia 1) where AWS's package is absent: what the chip lacks runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import torch

from neuron_tools.compiler import CompilerOptions
from neuron_tools.compiler.flags import parse_flags
from neuron_tools.frontends import torch_trace
from neuron_tools.frontends.torch_trace.analysis import analyze
from neuron_tools.frontends.torch_trace.batches import DataParallel
from neuron_tools.frontends.torch_trace.segments import SegmentRules, TracedOperation

__all__ = ["DataParallel", "analyze_model", "trace"]

HOST_OPERATORS = (
    "aten::embedding", "aten::embedding_bag", "aten::gather", "aten::index", "aten::index_select",
)  # fmt: skip
"""Look-ups by index. AWS's compiler for this chip leaves `aten::embedding` to the CPU (its BERT tutorial)."""


CASTS = CompilerOptions(auto_cast="all")
"""What neuron-cc does with float32 work unless `--fast-math` or `--fp32-cast` says otherwise."""


def trace(
    model: Callable[..., Any],
    example_inputs: torch.Tensor | tuple[torch.Tensor, ...],
    fallback: bool = True,
    op_whitelist: Collection[str] | None = None,
    minimum_segment_size: int = 2,
    subgraph_builder_function: Callable[[TracedOperation], bool] | None = None,
    allow_no_ops_on_neuron: bool = False,
    compiler_workdir: str | None = None,
    compiler_args: str | Sequence[str] | None = None,
    **others: Any,
) -> torch.jit.ScriptModule:
    """Compile a model for Inferentia 1; operators that the chip does not support run on the CPU.

    Args:
        model: Module or function of tensors.
        example_inputs: Inputs of the shapes and types that it will be called with.
        fallback: Leave unsupported operators to the CPU; False compiles everything.
        op_whitelist: If given, only these operators run on the device.
        minimum_segment_size: Operations below which a piece is left to the CPU.
        subgraph_builder_function: Called with each operation; where it returns False the operation runs on
            the CPU. `name` is the names of the classes of the modules around it, `type_string` its operator.
        allow_no_ops_on_neuron: Where nothing can run on the device, return a module that runs on the CPU.
        compiler_workdir: Folder that gets the compiled archives.
        compiler_args: Options of the compiler; those of `NEURON_CC_FLAGS` stand before them.
            `--neuroncore-pipeline-cores N` shares the model out over N NeuronCores.
        **others: Options of `torch.jit.trace` and of AWS's package that change nothing here.

    Returns:
        A TorchScript module; `torch.jit.save` keeps it, `torch.jit.load` needs this package imported.

    Raises:
        TraceError: The model cannot be traced, or none of it runs on the device.
    """
    flags = parse_flags(compiler_args or (), with_environment=True, options=CASTS)
    rules = SegmentRules(
        whole=not fallback,
        host_operators=HOST_OPERATORS if fallback else (),
        device_operators=tuple(op_whitelist or ()),
        smallest=minimum_segment_size if fallback else 1,
        chooses=subgraph_builder_function,
    )
    folder = Path(compiler_workdir) if compiler_workdir else None
    options = torch_trace.TraceOptions(
        flags.target or "inf1",
        flags.options,
        rules,
        folder,
        cores=flags.pipeline_cores,
        cache_folder=flags.cache_directory,
    )
    try:
        return torch_trace.trace(model, example_inputs, options)
    except torch_trace.NothingToRun:
        if not allow_no_ops_on_neuron:
            raise
        script: torch.jit.ScriptModule = torch.jit.trace(
            model, example_inputs, strict=False, check_trace=False
        )
        return script


def analyze_model(
    model: Callable[..., Any], example_inputs: Any, compiler_workdir: str | None = None
) -> dict[str, int]:
    """Print which operators of a model the chip runs.

    Args:
        model: Module or function of tensors.
        example_inputs: Inputs that it will be called with.
        compiler_workdir: Accepted for compatibility.

    Returns:
        How often each operator that runs on the CPU occurs.

    Raises:
        TraceError: The model cannot be turned into a graph.
    """
    support = analyze(model, example_inputs, HOST_OPERATORS)
    total = support.supported.total() + support.unsupported.total()
    print(
        f"{support.supported.total()} of {total} operations run on the device ({support.percentage:.2f} %)."
    )
    for name, count in sorted(support.unsupported.items()):
        print(f"On the CPU: {name} ({count})")
    return dict(support.unsupported)


if hasattr(torch, "neuron"):
    for _name in __all__:
        setattr(torch.neuron, _name, globals()[_name])
