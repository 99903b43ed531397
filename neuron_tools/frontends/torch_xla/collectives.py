"""Collectives of the device `xla`: recorded like other operations, so that a step stays one graph.

The ranks exchange values when one is recorded, and meet there in time; the graph moves the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

from neuron_tools.frontends.torch_lowering.meshes import groups_of

_functional = torch.ops._c10d_functional
Group: TypeAlias = dist.ProcessGroup | str | None
"""A group, or the name of groups of ranks (`meshes`); the whole job by default."""
Form = Callable[[Sequence[Any], Mapping[str, Any]], Any]


def all_reduce(tensor: torch.Tensor, reduction: str, group: Group = None) -> torch.Tensor:
    """Reduce over the ranks of a group.

    Args:
        tensor: What this rank brings.
        reduction: "sum", "avg", "product", "min" or "max".
        group: Of whose ranks; the whole job's by default.
    """
    return _done(_functional.all_reduce(tensor, reduction, _name(group)))


def all_gather(tensor: torch.Tensor, axis: int = 0, group: Group = None) -> torch.Tensor:
    """The ranks' tensors, one after the other along an axis."""
    ranks = _size(group)
    gathered = _done(_functional.all_gather_into_tensor(tensor.contiguous(), ranks, _name(group)))
    return gathered if axis == 0 else torch.cat(gathered.chunk(ranks), axis)


def reduce_scatter(tensor: torch.Tensor, reduction: str, axis: int = 0, group: Group = None) -> torch.Tensor:
    """This rank's part of the reduced tensor, cut along an axis."""
    ranks = _size(group)
    rows = tensor if axis == 0 else torch.cat(tensor.chunk(ranks, axis))
    return _done(_functional.reduce_scatter_tensor(rows.contiguous(), reduction, ranks, _name(group)))


def all_to_all(tensor: torch.Tensor, split_axis: int, concat_axis: int, group: Group = None) -> torch.Tensor:
    """Part r along one axis goes to rank r; what comes is put together along another."""
    ranks = _size(group)
    rows = torch.stack(tensor.chunk(ranks, split_axis))
    sizes = [1] * ranks
    come = _done(_functional.all_to_all_single(rows, sizes, sizes, _name(group)))
    return torch.cat(come.unbind(), concat_axis)


def broadcast(tensor: torch.Tensor, source: int, group: Group = None) -> torch.Tensor:
    """One rank's tensor; `source` is its place in the group."""
    return _done(_functional.broadcast(tensor, source, _name(group)))


def finished(func: Any, result: Any) -> Any:
    """A functional collective's result, once its values are there; other operators' results as they are."""
    return _done(result) if func in _RECORDED else result


def is_recorded(func: Any) -> bool:
    """Whether an operator is one that a graph has."""
    return func in _RECORDED


def recorded_form(func: Any, args: Sequence[Any]) -> Form | None:
    """What does a call of `torch.distributed` by operators that a graph has; None: nothing does."""
    if any(_reduction(boxed) == "premul_sum" for boxed in args if _is_reduction(boxed)):
        return None
    return _FORMS.get(func)


def _done(tensor: torch.Tensor) -> torch.Tensor:
    waited: torch.Tensor = _functional.wait_tensor(tensor)
    return waited


def _size(group: Group) -> int:
    groups = groups_of(group)
    return len(groups[0]) if groups else dist.get_world_size(group)


def _name(group: Group) -> str:
    if isinstance(group, str):
        return group
    chosen = dist.group.WORLD if group is None else group
    return str(chosen.group_name)


def _wait_tensor(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return args[0]


def _all_reduce(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tensors, group, reduction = args[:3]
    for tensor in tensors:
        tensor.copy_(all_reduce(tensor, _reduction(reduction), _unboxed(group)))
    return tensors, _ended(tensors)


def _broadcast(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tensors, group, source = args[:3]
    for tensor in tensors:
        tensor.copy_(broadcast(tensor, source, _unboxed(group)))
    return tensors, _ended(tensors)


def _gather_flat(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    output, tensor, group = args[:3]
    output.copy_(all_gather(tensor, 0, _unboxed(group)).view(output.shape))
    return output, _ended([output])


def _gather(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    (outputs,), (tensor,), group = args[:3]
    gathered = all_gather(tensor.unsqueeze(0), 0, _unboxed(group))
    for output, part in zip(outputs, gathered.unbind()):
        output.copy_(part)
    return [outputs], _ended(outputs)


def _scatter_flat(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    output, tensor, group, reduction = args[:4]
    output.copy_(reduce_scatter(tensor, _reduction(reduction), 0, _unboxed(group)).view(output.shape))
    return output, _ended([output])


def _scatter(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    (output,), (parts,), group, reduction = args[:4]
    output.copy_(reduce_scatter(torch.stack(parts), _reduction(reduction), 0, _unboxed(group))[0])
    return [output], _ended([output])


def _unboxed(group: Any) -> dist.ProcessGroup:
    return group if isinstance(group, dist.ProcessGroup) else dist.ProcessGroup.unbox(group)


def _is_reduction(argument: Any) -> bool:
    return isinstance(argument, torch.ScriptObject) and "op" in argument._method_names()


def _reduction(boxed: Any) -> str:
    return str(dist.ReduceOp.RedOpType(boxed.op()).name).lower()


def _ended(tensors: Sequence[torch.Tensor]) -> Any:
    """What `torch.distributed` waits for, of an operation that was recorded."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(list(tensors))
    return torch._C._distributed_c10d._create_work_from_future(future).boxed()


_RECORDED = frozenset(
    {
        _functional.all_reduce.default, _functional.all_gather_into_tensor.default,
        _functional.reduce_scatter_tensor.default, _functional.all_to_all_single.default,
        _functional.broadcast.default,
    }
)  # fmt: skip
_FORMS: dict[Any, Form] = {
    _functional.wait_tensor.default: _wait_tensor,
    torch.ops.c10d.allreduce_.default: _all_reduce,
    torch.ops.c10d.broadcast_.default: _broadcast,
    torch.ops.c10d._allgather_base_.default: _gather_flat,
    torch.ops.c10d.allgather_.default: _gather,
    torch.ops.c10d._reduce_scatter_base_.default: _scatter_flat,
    torch.ops.c10d.reduce_scatter_.default: _scatter,
}
