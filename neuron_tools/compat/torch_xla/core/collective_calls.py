"""Collectives as `torch_xla.core.xla_model` offers them; a process alone in its job gets its own back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from neuron_tools.frontends.torch_xla import collectives
from neuron_tools.frontends.torch_xla.dynamo import traced_whole
from neuron_tools.frontends.torch_xla.errors import XlaError

from .groups import group_of
from .ranks import has_others

REDUCE_SUM, REDUCE_MUL, REDUCE_AND, REDUCE_OR = "sum", "mul", "and", "or"
REDUCE_MIN, REDUCE_MAX = "min", "max"
_OPERATIONS = {
    REDUCE_SUM: "sum",
    REDUCE_MUL: "product",
    REDUCE_AND: "min",
    REDUCE_OR: "max",
    REDUCE_MIN: "min",
    REDUCE_MAX: "max",
}


@traced_whole
def all_reduce(
    reduce_type: str,
    inputs: torch.Tensor | list[torch.Tensor],
    scale: float = 1.0,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> Any:
    """Reduce over all ranks: a tensor gives a new one, a list is changed in place and returned.

    Args:
        reduce_type: `REDUCE_SUM` and so on.
        inputs: What this rank brings.
        scale: Factor of the result.
        groups: Ranks that reduce among themselves; all by default.
        pin_layout: Accepted for compatibility.

    Raises:
        XlaError: There is no such reduction.
    """
    if reduce_type not in _OPERATIONS:
        raise XlaError(f"There is no reduction {reduce_type!r}: use one of {sorted(_OPERATIONS)}.")
    if isinstance(inputs, torch.Tensor):
        return _reduced(inputs, reduce_type, scale, groups)
    with torch.no_grad():
        for tensor in inputs:
            tensor.copy_(_reduced(tensor, reduce_type, scale, groups))
    return inputs


def _reduced(
    tensor: torch.Tensor, reduce_type: str, scale: float, groups: list[list[int]] | None
) -> torch.Tensor:
    reduced = tensor.clone()
    if has_others():
        reduced = collectives.all_reduce(tensor, _OPERATIONS[reduce_type], group_of(groups))
    return reduced * scale if scale != 1.0 else reduced


@traced_whole
def all_gather(
    value: torch.Tensor | list[torch.Tensor],
    dim: int = 0,
    groups: list[list[int]] | None = None,
    output: Any = None,
    pin_layout: bool = True,
) -> Any:
    """All ranks' tensors, one after the other along a dimension; of a list, each by itself."""
    if not isinstance(value, torch.Tensor):
        return [all_gather(each, dim, groups, taken) for each, taken in _with_outputs(value, output)]
    gathered = collectives.all_gather(value, dim, group_of(groups)) if has_others() else value.clone()
    return gathered if output is None else output.copy_(gathered)


@traced_whole
def reduce_scatter(
    reduce_type: str,
    input: torch.Tensor | list[torch.Tensor],
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: list[list[int]] | None = None,
    output: Any = None,
    pin_layout: bool = True,
) -> Any:
    """This rank's part of the reduced tensor, cut along a dimension; of a list, of each by itself."""
    if not isinstance(input, torch.Tensor):
        return [
            reduce_scatter(reduce_type, each, scale, scatter_dim, shard_count, groups, taken)
            for each, taken in _with_outputs(input, output)
        ]
    part = input.clone()
    if shard_count > 1 and has_others():
        part = collectives.reduce_scatter(input, _OPERATIONS[reduce_type], scatter_dim, group_of(groups))
    part = part * scale if scale != 1.0 else part
    return part if output is None else output.copy_(part)


@traced_whole
def all_to_all(
    value: torch.Tensor,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> torch.Tensor:
    """Part r of the tensor, cut along a dimension, goes to rank r; what comes is joined along another."""
    if split_count == 1 or not has_others():
        return value.clone()
    return collectives.all_to_all(value, split_dimension, concat_dimension, group_of(groups))


@traced_whole
def collective_broadcast(
    tensors: list[torch.Tensor],
    root_ordinal: int = 0,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> None:
    """Give all ranks one rank's tensors, in place."""
    if not has_others():
        return
    group = group_of(groups)
    is_group = isinstance(group, dist.ProcessGroup)
    root = dist.get_group_rank(group, root_ordinal) if is_group else root_ordinal
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(collectives.broadcast(tensor, root, group))


def broadcast_master_param(model: torch.nn.Module) -> None:
    """Give all ranks the first one's parameters and buffers."""
    collective_broadcast([*(each.detach() for each in model.parameters()), *model.buffers()])


@traced_whole
def all_gather_bucketized(
    input_list: list[torch.Tensor],
    dim: int = 0,
    groups: list[list[int]] | None = None,
    output: list[torch.Tensor] | None = None,
    pin_layout: bool = False,
    bucket_cap_mb: int = 160,
) -> list[torch.Tensor]:
    """Each of several tensors gathered, in one operation for each bucket of them.

    Args:
        input_list: This rank's tensors.
        dim: Along which dimension the ranks' parts are joined.
        groups: Ranks that gather among themselves; all by default.
        output: Tensors that take the results.
        pin_layout: Accepted for compatibility.
        bucket_cap_mb: Megabytes of a bucket.
    """
    results: list[torch.Tensor] = []
    for bucket in _buckets(input_list, bucket_cap_mb):
        gathered = all_gather(_joined(bucket).unsqueeze(0), 0, groups)
        each = [part.split([tensor.numel() for tensor in bucket]) for part in gathered.unbind()]
        for number, tensor in enumerate(bucket):
            results.append(torch.cat([parts[number].view(tensor.shape) for parts in each], dim))
    return _delivered(results, output)


@traced_whole
def reduce_scatter_bucketized(
    reduce_type: str,
    input_list: list[torch.Tensor],
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: list[list[int]] | None = None,
    output: list[torch.Tensor] | None = None,
    pin_layout: bool = False,
    bucket_cap_mb: int = 160,
) -> list[torch.Tensor]:
    """This rank's part of each of several reduced tensors, in one operation for each bucket of them.

    Args:
        reduce_type: `REDUCE_SUM` and so on.
        input_list: This rank's tensors.
        scale: Factor of the results.
        scatter_dim: Along which dimension they are cut.
        shard_count: Into how many parts.
        groups: Ranks that reduce among themselves; all by default.
        output: Tensors that take the results.
        pin_layout: Accepted for compatibility.
        bucket_cap_mb: Megabytes of a bucket.
    """
    results: list[torch.Tensor] = []
    for bucket in _buckets(input_list, bucket_cap_mb):
        parts = [tensor.chunk(shard_count, scatter_dim) for tensor in bucket]
        rows = torch.stack([_joined([pieces[rank] for pieces in parts]) for rank in range(shard_count)])
        own = reduce_scatter(reduce_type, rows, scale, 0, shard_count, groups)[0]
        for piece, values in zip(parts, own.split([pieces[0].numel() for pieces in parts])):
            results.append(values.view(piece[0].shape))
    return _delivered(results, output)


def _buckets(tensors: Sequence[torch.Tensor], megabytes: int) -> list[list[torch.Tensor]]:
    """The tensors in order, in groups of one element type that are no larger than asked for."""
    buckets: list[list[torch.Tensor]] = []
    room_bytes = 0
    for tensor in tensors:
        is_alike = bool(buckets) and buckets[-1][0].dtype == tensor.dtype
        if not is_alike or tensor.nbytes > room_bytes:
            buckets.append([])
            room_bytes = megabytes << 20
        buckets[-1].append(tensor)
        room_bytes -= tensor.nbytes
    return buckets


def _with_outputs(tensors: list[torch.Tensor], outputs: Any) -> Iterable[tuple[torch.Tensor, Any]]:
    return zip(tensors, [None] * len(tensors) if outputs is None else outputs)


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _delivered(results: list[torch.Tensor], output: list[torch.Tensor] | None) -> list[torch.Tensor]:
    if output is None:
        return results
    return [taken.copy_(result) for taken, result in zip(output, results)]
