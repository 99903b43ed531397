"""`torch_xla.distributed.spmd.xla_sharding`: meshes of cores, and how tensors lie over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.compat.absent import names_of
from neuron_tools.frontends.torch_xla import spread
from neuron_tools.frontends.torch_xla.barrier import put_barrier
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.linear import (
    XLAPatchedLinear,
    apply_xla_patch_to_nn_linear,
    xla_patched_nn_linear_forward,
)
from neuron_tools.frontends.torch_xla.manual import enter, leave
from neuron_tools.frontends.torch_xla.marking import alike, mark, place
from neuron_tools.frontends.torch_xla.sharding import WHOLE
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

from .mesh import HybridMesh, Mesh, PartitionSpec
from .xla_sharded_tensor import (
    ShardingType,
    XLAShard,
    XLAShardedTensor,
    unwrap_sharded_tensor,
    wrap_as_sharded_tensor,
    wrap_if_sharded,
)

__getattr__ = names_of(
    __name__,
    "shardings that the compiler chooses are not simulated; say with mark_sharding how tensors lie over the "
    "cores.",
)


@dataclass
class ShardingSpec:
    """How the tensors of a batch lie.

    Attributes:
        mesh: Over which cores.
        partition_spec: How they are cut.
        minibatch: Whether each machine loads its own part; there is one here.
    """

    mesh: Mesh
    partition_spec: PartitionSpec
    minibatch: bool = False

    def can_apply(self, t: torch.Tensor) -> bool:
        """Whether a tensor has as many dimensions."""
        return len(t.shape) == len(self.partition_spec)

    def apply(self, t: torch.Tensor) -> None:
        """Let a tensor lie so.

        Raises:
            XlaError: As in `mark_sharding`, or each core has no equal share of a machine's own batch.
        """
        if self.minibatch and t.dim() and t.shape[0] % spread.core_count():
            raise XlaError(
                f"The loader's batch of {t.shape[0]} is no multiple of this machine's {spread.core_count()} "
                "cores, as minibatch needs it: choose another batch, or leave minibatch out."
            )
        mark_sharding(t, self.mesh, self.partition_spec)


_global_mesh: list[Mesh] = []


def set_global_mesh(mesh: Mesh) -> None:
    """Let a mesh be that of the whole program."""
    _global_mesh[:] = [mesh]


def get_global_mesh() -> Mesh | None:
    """The mesh of the whole program; None where there is none."""
    return _global_mesh[0] if _global_mesh else None


def get_1d_mesh(axis_name: str | None = None) -> Mesh:
    """All cores in a row."""
    cores = spread.core_count()
    return Mesh(range(cores), (cores,), () if axis_name is None else (axis_name,))


def mark_sharding(
    t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec, use_dynamo_custom_op: bool = False
) -> XLAShardedTensor:
    """Say how a tensor lies over the cores.

    Args:
        t: Of the device `xla`.
        mesh: All cores of this process.
        partition_spec: One entry a dimension.
        use_dynamo_custom_op: Accepted for compatibility.

    Raises:
        XlaError: The program is not partitioned, the tensor is elsewhere, lies over the cores in another way
            or is each core's own part already, or mesh or spec do not fit.
    """
    tensor, sharding = _checked(t, mesh, partition_spec), mesh.sharding(tuple(partition_spec))
    before = tensor.lazy.sharding
    if before is not None and before.tiles and before != sharding:
        raise XlaError(
            f"The tensor lies over the cores as {before.text} already: call clear_sharding first, or "
            "annotate_custom_sharding to move it from here on."
        )
    mark(tensor, sharding)
    return wrap_as_sharded_tensor(t, mesh.mesh_shape, mesh.numbered(tuple(partition_spec)))


def annotate_custom_sharding(
    t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec, use_dynamo_custom_op: bool = False
) -> XLAShardedTensor:
    """Let a tensor lie over the cores so from here on, also one that lies in another way.

    Args:
        t: Of the device `xla`.
        mesh: All cores of this process.
        partition_spec: One entry a dimension.
        use_dynamo_custom_op: Accepted for compatibility.

    Raises:
        XlaError: The program is not partitioned, the tensor is elsewhere or each core's own part, or mesh or
            spec do not fit.
    """
    place(_checked(t, mesh, partition_spec), mesh.sharding(tuple(partition_spec)))
    return wrap_as_sharded_tensor(t, mesh.mesh_shape, mesh.numbered(tuple(partition_spec)))


def clear_sharding(t: torch.Tensor) -> torch.Tensor:
    """Let each core have all of a tensor.

    Raises:
        XlaError: Each core has a part of its own, which `disable_manual_sharding` joins.
    """
    if isinstance(t, XlaTensor) and spread.is_asked_for():
        mark(t, WHOLE)
        t.lazy.sharding = None
    return unwrap_sharded_tensor(t)


def shard_as(a: Any, b: Any) -> tuple[Any, Any]:
    """Let tensors lie as others do, however that is: the partitioner chooses it for both.

    Args:
        a: Tensors of the device `xla`, in lists, tuples or dicts.
        b: As many, in the same places.

    Returns:
        Both; what is made of one of them lets both lie so.

    Raises:
        XlaError: The two have not the same structure, tensors have different shapes, or one is each core's
            own part.
    """
    ones, structure = pytree.tree_flatten(a)
    others, other_structure = pytree.tree_flatten(b)
    if structure != other_structure:
        raise XlaError(f"shard_as takes two of one structure, and got {structure} and {other_structure}.")
    pairs = [alike(one, other) for one, other in zip(ones, others)]
    first, second = zip(*pairs) if pairs else ((), ())
    return pytree.tree_unflatten(first, structure), pytree.tree_unflatten(second, structure)


def enable_manual_sharding(
    t: torch.Tensor, partition_spec: PartitionSpec, *, mesh: Mesh | None = None
) -> XLAShardedTensor:
    """Each core's own part of a tensor: what is made of it, each core computes of its part alone.

    Args:
        t: Of the device `xla`.
        partition_spec: One entry a dimension.
        mesh: All cores of this process; the global one by default.

    Raises:
        XlaError: As in `mark_sharding`, or there is no mesh.
    """
    chosen = _mesh_or_global(mesh)
    marked = mark_sharding(t, chosen, partition_spec)
    spec = chosen.numbered(tuple(partition_spec))
    return XLAShardedTensor(enter(marked.global_tensor, chosen.sharding(spec)), chosen.mesh_shape, spec)


def disable_manual_sharding(
    t: torch.Tensor, partition_spec: PartitionSpec, full_shape: Sequence[int], *, mesh: Mesh | None = None
) -> XLAShardedTensor:
    """The tensor of which each core has computed its part.

    Args:
        t: What `enable_manual_sharding` gave, or what was made of it.
        partition_spec: Which part each core has, one entry a dimension.
        full_shape: The tensor's.
        mesh: All cores of this process; the global one by default.

    Raises:
        XlaError: It is no core's own part, or mesh, spec and shape do not fit.
    """
    chosen = _mesh_or_global(mesh)
    part = _checked(unwrap_sharded_tensor(t), chosen, partition_spec)
    spec = chosen.numbered(tuple(partition_spec))
    return XLAShardedTensor(leave(part, chosen.sharding(spec), full_shape), chosen.mesh_shape, spec)


def _mesh_or_global(mesh: Mesh | None) -> Mesh:
    chosen = mesh or get_global_mesh()
    if chosen is None:
        raise XlaError("There is no mesh: give one, or name the program's with set_global_mesh.")
    return chosen


def _checked(t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> XlaTensor:
    if not spread.is_asked_for():
        raise XlaError("mark_sharding needs a partitioned program: call torch_xla.runtime.use_spmd() first.")
    if not isinstance(t, XlaTensor):
        raise XlaError(f"mark_sharding got a tensor on {t.device}: move it with .to(xm.xla_device()) first.")
    if not isinstance(mesh, Mesh) or not isinstance(partition_spec, (tuple, list)):
        raise XlaError(
            "mark_sharding takes a tensor, a Mesh and a tuple with one entry a dimension, and got "
            f"{type(mesh).__name__} and {type(partition_spec).__name__} behind the tensor."
        )
    _check_cores(mesh)
    if len(partition_spec) != t.dim():
        raise XlaError(
            f"The partition spec {tuple(partition_spec)} is for {len(partition_spec)} dimensions and the "
            f"tensor has {t.dim()}: give one entry a dimension, None for those that are not cut."
        )
    return t


def _check_cores(mesh: Mesh) -> None:
    cores = spread.core_count()
    if mesh.size() != cores:
        raise XlaError(
            f"The mesh has {mesh.size()} cores and this process {cores}: use all of them "
            "(xr.global_runtime_device_count()), or set NEURON_RT_NUM_CORES."
        )
    if set(mesh.device_ids.tolist()) != set(range(cores)):
        raise XlaError(
            f"The mesh names the cores {mesh.device_ids.tolist()}, and this process has 0 to {cores - 1}: "
            "use np.arange(xr.global_runtime_device_count())."
        )


class MarkShardingFunction(torch.autograd.Function):
    """Says of a tensor and of its gradient how they lie over the cores."""

    @staticmethod
    def forward(
        ctx: Any, torch_tensor: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec
    ) -> torch.Tensor:
        """A tensor that lies so."""
        ctx.mesh, ctx.partition_spec = mesh, partition_spec
        marked = torch_tensor.clone()
        mark_sharding(marked, mesh, partition_spec)
        return marked

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
        """The gradient, which lies so too."""
        marked = grad_output.clone()
        mark_sharding(marked, ctx.mesh, ctx.partition_spec)
        return marked, None, None


def mark_sharding_with_gradients(t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> torch.Tensor:
    """A tensor that lies over the cores so, as its gradient will."""
    marked: torch.Tensor = MarkShardingFunction.apply(t, mesh, partition_spec)
    return marked


def apply_backward_optimization_barrier(m: torch.nn.Module) -> None:
    """Let a module's backward pass end at a barrier, so that its collectives are not merged with others."""

    def end(module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        put_barrier([value for value in inputs if isinstance(value, torch.Tensor)])

    m.register_full_backward_hook(end)


__all__ = [
    "HybridMesh", "MarkShardingFunction", "Mesh", "PartitionSpec", "ShardingSpec", "ShardingType",
    "XLAPatchedLinear", "XLAShard", "XLAShardedTensor", "annotate_custom_sharding",
    "apply_backward_optimization_barrier",
    "apply_xla_patch_to_nn_linear", "clear_sharding", "disable_manual_sharding",
    "enable_manual_sharding", "get_1d_mesh", "get_global_mesh", "mark_sharding",
    "mark_sharding_with_gradients", "set_global_mesh", "shard_as",
    "unwrap_sharded_tensor", "wrap_as_sharded_tensor", "wrap_if_sharded", "xla_patched_nn_linear_forward",
]  # fmt: skip
