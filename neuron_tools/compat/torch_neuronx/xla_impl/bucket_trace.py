"""`torch_neuronx.xla_impl.bucket_trace`: a rank with buckets, as neuronx-distributed puts it together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.rank_buckets import RankBuckets, rank_bucket_model

from ..inference import BucketModelConfig  # noqa: TID252 - once, under AWS's name
from ..proto.metaneff_pb2 import MetaNeff  # noqa: TID252 - likewise
from .structure import Flattener, Packer

__all__ = ["create_bucket_model"]


def create_bucket_model(
    models: Sequence[tuple[bytes, MetaNeff]],
    bucket_config: BucketModelConfig,
    flattener: Flattener,
    packer: Packer,
    weights: Mapping[str, torch.Tensor],
    input_output_aliases: Sequence[Mapping[torch.Tensor, int]],
) -> torch.jit.ScriptModule:
    """The TorchScript module of a rank: each of its `bucket_model_executor.models` is loaded by itself.

    Args:
        models: Archive of each bucket, and what its inputs and results are.
        bucket_config: How a bucket is chosen, and which states all share.
        flattener: Of a call's inputs, which are tensors.
        packer: Puts results together.
        weights: Weights and states by name.
        input_output_aliases: Of each bucket: state -> which result, counted flat, is its next value.

    Raises:
        TraceError: The inputs are no tensors, TorchScript cannot compile a function of the configuration, or
            a bucket's states have other shapes than those that it gets.
    """
    if any(not isinstance(place, int) for place in flattener.layout):
        raise TraceError("Inputs of a model with buckets are tensors: pass those in lists one by one.")
    config, order = bucket_config, [_by_result([*each.values()]) for each in input_output_aliases]
    cut = config.shared_state_buffer_preprocessor
    shared = config.shared_state_buffer is not None
    chosen = RankBuckets(
        config.bucket_kernel(),
        config.bucket_kernel_constant_args or (),
        config.shared_state_buffer,
        cut() if cut is not None and shared else None,
        order,
    )
    return rank_bucket_model([archive for archive, _ in models], weights, packer, chosen)


def _by_result(results: Sequence[int]) -> list[int]:
    """Which of the aliases each is, counted by their results."""
    return [sorted(results).index(result) for result in results]
