"""What `torch_neuronx` has for traced models: batches, buckets, weights, places, and what a model uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from neuron_tools.frontends.torch_trace.analysis import analyze as _analyze
from neuron_tools.frontends.torch_trace.batches import BatchedModel, DataParallel
from neuron_tools.frontends.torch_trace.buckets import Bucket, bucketed, share_states
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.placement import place
from neuron_tools.frontends.torch_trace.rank_models import move_values
from neuron_tools.frontends.torch_trace.trace import example_tensors

from .tracing import trace

__all__ = [
    "BucketModelConfig", "DataParallel", "analyze", "async_load", "bucket_model_trace", "dynamic_batch",
    "lazy_load", "move_trace_to_device",
]  # fmt: skip
VERSION = "2.9"


def dynamic_batch(neuron_script: torch.nn.Module) -> BatchedModel:
    """Let a traced model take batches of any size, in pieces of the size it was traced for.

    Raises:
        TraceError: It is no traced model, or it keeps states.
    """
    return BatchedModel(neuron_script, ())


def async_load(trace: torch.nn.Module, enable_async_load: bool = True) -> None:
    """Accepted for compatibility: loading takes no time here."""


def lazy_load(trace: torch.nn.Module, enable_lazy_load: bool = True) -> None:
    """Accepted for compatibility: models are loaded at their first call."""


def move_trace_to_device(trace: torch.nn.Module, device_id: int) -> None:
    """Let a traced model run on one core from now on; weights and states of a rank are put there.

    Raises:
        TraceError: There is no such core.
    """
    place(trace, [device_id])
    move_values(trace, device_id)


@dataclass
class BucketModelConfig:
    """How a call's bucket is chosen.

    Attributes:
        bucket_kernel: Gives the function that pads a list of tensors and numbers their bucket; TorchScript
            must be able to compile it.
        bucket_kernel_constant_args: Passed to that function after the tensors.
        shared_state_buffer: Initial values of the states that all buckets share, in the order of each
            bucket's aliases; without it each bucket has states of its own.
        shared_state_buffer_preprocessor: Gives the function that cuts the shared states to the size of each
            bucket, for `parallel_model_trace`; `bucket_model_trace` refuses it together with
            `shared_state_buffer`.
        func_kwargs: Keyword arguments of the model's function, for all buckets or for each.
        bucket_degree: How many buckets there are.
    """

    bucket_kernel: Callable[..., Any]
    bucket_kernel_constant_args: Sequence[Any] | None = None
    shared_state_buffer: Sequence[torch.Tensor] | None = None
    shared_state_buffer_preprocessor: Callable[..., Any] | None = None
    func_kwargs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    bucket_degree: int = field(default=1, init=False)

    def store_example_inputs(self, example_inputs: Sequence[Any]) -> None:
        """Note how many buckets there are, as neuronx-distributed begins.

        Args:
            example_inputs: Of each bucket.
        """
        self.bucket_degree = len(example_inputs)

    def get_func_kwargs_for_bucket_rank(self, bucket_rank: int) -> Mapping[str, Any]:
        """Keyword arguments of the model's function for one bucket."""
        kwargs: Mapping[str, Any] = _of(self.func_kwargs or {}, bucket_rank)
        return kwargs


def bucket_model_trace(
    func: Callable[..., Any] | Sequence[Callable[..., Any]],
    example_inputs: Sequence[Any],
    bucket_config: BucketModelConfig,
    compiler_workdir: str | None = None,
    compiler_args: str | Sequence[str] | None = None,
) -> torch.jit.ScriptModule:
    """Trace a model once for each bucket.

    Args:
        func: Gives `(model, input_output_aliases)`; one for all buckets, or one for each. The aliases are
            those of `trace`.
        example_inputs: Inputs of each bucket.
        bucket_config: How a call's bucket is chosen.
        compiler_workdir: Folder that gets a folder for each bucket.
        compiler_args: Options of the compiler.

    Returns:
        A TorchScript module; `torch.jit.save` keeps it.

    Raises:
        TraceError: The model cannot be traced, TorchScript cannot compile the bucket's function, the shared
            states do not match those of each bucket, or they have a preprocessor.
    """
    if bucket_config.shared_state_buffer is not None and bucket_config.shared_state_buffer_preprocessor:
        raise TraceError(
            "A shared_state_buffer_preprocessor, which cuts shared states to the size of each bucket, is not "
            "simulated: let the model of every bucket take the whole states, and leave the preprocessor out."
        )
    buckets = []
    for number, inputs in enumerate(example_inputs):
        model, aliases = _of(func, number)(**bucket_config.get_func_kwargs_for_bucket_rank(number))
        folder = str(Path(compiler_workdir) / f"bucket_{number}") if compiler_workdir else None
        traced = trace(
            model, inputs, input_output_aliases=aliases, compiler_workdir=folder, compiler_args=compiler_args
        )
        buckets.append(Bucket(traced, [value.shape for value in example_tensors(inputs)]))
    if bucket_config.shared_state_buffer is not None:
        share_states(buckets, bucket_config.shared_state_buffer)
    kernel = bucket_config.bucket_kernel()
    return bucketed(buckets, kernel, bucket_config.bucket_kernel_constant_args or ())


def _of(given: Any, number: int) -> Any:
    return given[number] if isinstance(given, Sequence) else given


def analyze(
    func: Callable[..., Any],
    example_inputs: Any,
    compiler_workdir: str | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Which operators of a model the device runs.

    Args:
        func: A module or function of tensors.
        example_inputs: Inputs that it will be called with.
        compiler_workdir: Accepted for compatibility.
        **others: Likewise.

    Returns:
        The share of supported operations in per cent, and both kinds of operators.

    Raises:
        TraceError: The model cannot be turned into a graph.
    """
    support = _analyze(func, example_inputs)
    return {
        "torch_neuronx_version": VERSION,
        "support_percentage": f"{support.percentage:.2f}%",
        "supported_operators": {"aten": _by_name(support.supported)},
        "unsupported_operators": [
            {"kind": name, "count": count} for name, count in sorted(support.unsupported.items())
        ],
    }


def _by_name(counts: Mapping[str, int]) -> dict[str, int]:
    return {name.removeprefix("aten::"): count for name, count in sorted(counts.items())}
