"""`torch_xla.distributed.spmd.xla_sharding`: meshes of cores, and how tensors lie over them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from neuron_tools.compat.absent import names_of
from neuron_tools.frontends.torch_xla import spread
from neuron_tools.frontends.torch_xla.barrier import put_barrier
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.linear import (
    XLAPatchedLinear,
    apply_xla_patch_to_nn_linear,
    xla_patched_nn_linear_forward,
)
from neuron_tools.frontends.torch_xla.marking import mark, move
from neuron_tools.frontends.torch_xla.sharding import WHOLE, Sharding
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

from .xla_sharded_tensor import ShardingType, XLAShard, XLAShardedTensor

Axis = int | str | None
PartitionSpec = tuple[Axis | tuple[int | str, ...], ...]
"""For each dimension of a tensor the axis or axes of the mesh that it is cut along; None: not."""

__getattr__ = names_of(
    __name__,
    "manual and automatic sharding and DTensor's interface are not simulated; say with mark_sharding how "
    "tensors lie over the cores.",
)


class Mesh:
    """The cores as an array with named axes.

    Args:
        device_ids: Their numbers, in the order in which they fill the array.
        mesh_shape: Its extents.
        axis_names: Names of its axes; empty means none has one.

    Raises:
        XlaError: The shape is not of as many cores, a core occurs twice, or names and axes do not match.
    """

    def __init__(
        self,
        device_ids: NDArray[Any] | Sequence[int],
        mesh_shape: Sequence[int],
        axis_names: Sequence[str] | None = (),
    ) -> None:
        self.device_ids = np.asarray(device_ids).ravel()
        self.mesh_shape = tuple(int(extent) for extent in mesh_shape)
        self.axis_names = tuple(axis_names or ())
        if len(self.device_ids) != math.prod(self.mesh_shape):
            raise XlaError(
                f"A mesh of shape {self.mesh_shape} has {math.prod(self.mesh_shape)} cores and got "
                f"{len(self.device_ids)}: let the product of its extents be xr.global_runtime_device_count()."
            )
        if len(set(self.device_ids.tolist())) != len(self.device_ids):
            raise XlaError("A core stands twice in a mesh: name each once.")
        if self.axis_names and not (
            len(set(self.axis_names)) == len(self.axis_names) == len(self.mesh_shape)
        ):
            raise XlaError(
                f"A mesh of shape {self.mesh_shape} needs {len(self.mesh_shape)} different names of axes and "
                f"got {self.axis_names}."
            )

    def size(self) -> int:
        """How many cores."""
        return len(self.device_ids)

    def shape(self) -> OrderedDict[Axis, int]:
        """Extents by name, or by number where axes have no names."""
        return OrderedDict(zip(self.axis_names or range(len(self.mesh_shape)), self.mesh_shape))

    def get_logical_mesh(self) -> NDArray[Any]:
        """The array of the cores' numbers."""
        return self.device_ids.reshape(self.mesh_shape)

    def get_axis_name_idx(self, name: str) -> int | None:
        """The number of an axis; None where none has that name."""
        return self.axis_names.index(name) if name in self.axis_names else None

    def sharding(self, partition_spec: PartitionSpec) -> Sharding:
        """How a tensor lies that is cut along these axes.

        Raises:
            XlaError: There is no such axis, or one is used twice.
        """
        cut = [self._numbers(axes) for axes in partition_spec]
        used = [axis for axes in cut for axis in axes]
        if len(set(used)) != len(used):
            raise XlaError(
                f"The partition spec {partition_spec} uses an axis of the mesh twice: use each once."
            )
        rest = [axis for axis in range(len(self.mesh_shape)) if axis not in used]
        cores = self.get_logical_mesh().transpose(*used, *rest).ravel()
        counts = [math.prod(self.mesh_shape[axis] for axis in axes) for axes in cut]
        return Sharding.of(counts, [int(core) for core in cores])

    def _numbers(self, axes: Any) -> tuple[int, ...]:
        if axes is None:
            return ()
        return tuple(self._number(axis) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)))

    def _number(self, axis: int | str) -> int:
        number = self.get_axis_name_idx(axis) if isinstance(axis, str) else axis
        if not isinstance(number, int) or not 0 <= number < len(self.mesh_shape):
            raise XlaError(f"The mesh has no axis {axis!r}; it has {list(self.shape())}.")
        return number

    def __repr__(self) -> str:
        return f"Mesh({dict(self.shape())}, cores {self.device_ids.tolist()})"


class HybridMesh(Mesh):
    """A mesh within machines and among them; here there is one machine.

    Args:
        ici_mesh_shape: Extents within a machine.
        dcn_mesh_shape: Extents among machines; all 1 by default.
        axis_names: Names of the axes.

    Raises:
        XlaError: As in `Mesh`, or the two shapes have not as many axes.
    """

    def __init__(
        self,
        *,
        ici_mesh_shape: Sequence[int],
        dcn_mesh_shape: Sequence[int] | None = None,
        axis_names: Sequence[str] | None = (),
    ) -> None:
        among = dcn_mesh_shape or (1,) * len(ici_mesh_shape)
        self.ici_mesh_shape, self.dcn_mesh_shape = tuple(ici_mesh_shape), tuple(among)
        if len(self.ici_mesh_shape) != len(self.dcn_mesh_shape):
            raise XlaError(
                f"ici_mesh_shape {self.ici_mesh_shape} and dcn_mesh_shape {self.dcn_mesh_shape} must have as "
                "many axes: write 1 for one that does not reach over machines."
            )
        shape = [inner * outer for inner, outer in zip(ici_mesh_shape, among)]
        super().__init__(np.arange(math.prod(shape)), shape, axis_names)


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
        XlaError: The program is not partitioned, the tensor is elsewhere or lies over the cores in another
            way already, or mesh or spec do not fit.
    """
    before, sharding = _checked(t, mesh, partition_spec).lazy.sharding, mesh.sharding(tuple(partition_spec))
    if before is not None and before.tiles and before != sharding:
        raise XlaError(
            f"The tensor lies over the cores as {before.text} already: call clear_sharding first, or "
            "annotate_custom_sharding to move it from here on."
        )
    mark(t, sharding)
    marked: XLAShardedTensor = wrap_if_sharded(t)
    return marked


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
        XlaError: The program is not partitioned, the tensor is elsewhere, or mesh or spec do not fit.
    """
    place = move if spread.is_spread() else mark
    place(_checked(t, mesh, partition_spec), mesh.sharding(tuple(partition_spec)))
    marked: XLAShardedTensor = wrap_if_sharded(t)
    return marked


def clear_sharding(t: torch.Tensor) -> torch.Tensor:
    """Let each core have all of a tensor."""
    if isinstance(t, XlaTensor) and spread.is_asked_for():
        mark(t, WHOLE)
        t.lazy.sharding = None
    return t


def wrap_if_sharded(x: Any) -> Any:
    """A tensor as one of which the parts can be asked for, where it has any."""
    is_sharded = isinstance(x, XlaTensor) and x.lazy.sharding is not None
    return XLAShardedTensor(x) if is_sharded and not isinstance(x, XLAShardedTensor) else x


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
    "apply_xla_patch_to_nn_linear", "clear_sharding", "get_1d_mesh", "get_global_mesh", "mark_sharding",
    "mark_sharding_with_gradients", "set_global_mesh", "wrap_if_sharded", "xla_patched_nn_linear_forward",
]  # fmt: skip
