"""`torch_xla.distributed.spmd.api`: DTensor's interface on the device `xla`, in terms of `mark_sharding`.

`torch.distributed.tensor.distribute_tensor` and `distribute_module` call it for a mesh of the device `xla`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate

from neuron_tools.compat.torch_xla import runtime
from neuron_tools.frontends.torch_xla.errors import XlaError

from .placements import convert_to_xla_mesh, convert_to_xla_partition_spec
from .xla_sharded_tensor import XLAShardedTensor
from .xla_sharding import mark_sharding

__all__ = ["auto_policy", "xla_distribute_module", "xla_distribute_tensor"]


def auto_policy(mod_name: str, mod: torch.nn.Module, mesh: DeviceMesh) -> None:
    """Ask for shardings that the compiler chooses, which are not there.

    Raises:
        XlaError: Always.
    """
    runtime.use_spmd(auto=True)


def xla_distribute_tensor(
    tensor: torch.Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None
) -> XLAShardedTensor:
    """A tensor that lies over the cores so; programs are partitioned from now on.

    Args:
        tensor: It is moved to the device `xla`; no result of what gradients pass through.
        device_mesh: Of all cores of this process.
        placements: One for each axis of the mesh; whole on each core by default.

    Raises:
        XlaError: There is not one placement for each axis, gradients would end here, or as in
            `mark_sharding`.
    """
    if not tensor.is_leaf:
        raise XlaError(
            "distribute_tensor got a result, to whose operands no gradient would pass: use "
            "mark_sharding_with_gradients for it, or detach it first."
        )
    chosen = placements or [Replicate()] * device_mesh.ndim
    if len(chosen) != device_mesh.ndim:
        raise XlaError(
            f"The mesh has {device_mesh.ndim} axes and got {len(chosen)} placements: give one for each."
        )
    mesh = convert_to_xla_mesh(device_mesh)
    runtime.use_spmd()
    moved = tensor.to("xla")
    sharded = mark_sharding(moved, mesh, convert_to_xla_partition_spec(moved, chosen))
    sharded.requires_grad_(tensor.requires_grad)
    return sharded


def xla_distribute_module(
    module: torch.nn.Module,
    device_mesh: DeviceMesh,
    partition_fn: Callable[[str, torch.nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> torch.nn.Module:
    """A module whose parameters lie over the cores as a function says.

    Args:
        module: On the device `xla`.
        device_mesh: Of all cores of this process.
        partition_fn: Called with the name of each module inside, the module and the mesh.
        input_fn: Called with the module, its arguments and the mesh; without the module, as formerly, where
            it takes two arguments.
        output_fn: Likewise with its output.

    Raises:
        XlaError: As `partition_fn` does.
    """
    runtime.use_spmd()
    if partition_fn is not None:
        for name, inner in module.named_modules():
            partition_fn(name, inner, device_mesh)
    if input_fn is not None:
        takes = _with_module(input_fn)
        module.register_forward_pre_hook(lambda owner, inputs: takes(owner, inputs, device_mesh))
    if output_fn is not None:
        gives = _with_module(output_fn)
        module.register_forward_hook(lambda owner, inputs, outputs: gives(owner, outputs, device_mesh))
    return module


def _with_module(function: Callable[..., Any]) -> Callable[..., Any]:
    if len(signature(function).parameters) > 2:
        return function
    return lambda module, values, mesh: function(values, mesh)
