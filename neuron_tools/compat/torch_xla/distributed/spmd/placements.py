"""DTensor's words for how a tensor lies, as partition specs: a mesh, and a placement for each axis."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard

from neuron_tools.frontends.torch_xla.errors import XlaError

from .mesh import AxisNumbers, Mesh


def convert_to_xla_mesh(dt_mesh: DeviceMesh) -> Mesh:
    """The mesh of cores that a mesh of DTensor's names.

    Raises:
        XlaError: It is of another device type.
    """
    if dt_mesh.device_type != "xla":
        raise XlaError(
            f'The mesh is of the device {dt_mesh.device_type}: make it by init_device_mesh("xla", ...).'
        )
    return Mesh(dt_mesh.mesh.flatten().tolist(), tuple(dt_mesh.mesh.shape), dt_mesh.mesh_dim_names)


def convert_to_xla_partition_spec(tensor: torch.Tensor, placements: Sequence[Placement]) -> AxisNumbers:
    """For each dimension of a tensor the axis or axes of the mesh that it is cut along.

    Args:
        tensor: Its dimensions count.
        placements: One for each axis of the mesh.

    Raises:
        XlaError: A placement is neither `Shard` nor `Replicate`, or cuts a dimension that is not there.
    """
    axes: list[list[int]] = [[] for _ in tensor.shape]
    for axis, placement in enumerate(placements):
        if not isinstance(placement, Shard):
            _check_is_whole(placement)
        elif not -tensor.dim() <= placement.dim < tensor.dim():
            raise XlaError(f"{placement} cuts a dimension of a tensor that has {tensor.dim()}.")
        else:
            axes[placement.dim].append(axis)
    return tuple(tuple(each) if len(each) > 1 else (each[0] if each else None) for each in axes)


def placements_of(mesh_shape: Sequence[int], partition_spec: AxisNumbers) -> tuple[Placement, ...]:
    """A placement for each axis of a mesh."""
    cut = {
        axis: dimension
        for dimension, axes in enumerate(partition_spec)
        for axis in (axes if isinstance(axes, tuple) else (axes,))
    }
    return tuple(Shard(cut[axis]) if axis in cut else Replicate() for axis in range(len(mesh_shape)))


def _check_is_whole(placement: Placement) -> None:
    if not isinstance(placement, Replicate):
        raise XlaError(
            f"{placement} is not there on the device xla, whose tensors lie whole or in parts: use Shard or "
            "Replicate."
        )
