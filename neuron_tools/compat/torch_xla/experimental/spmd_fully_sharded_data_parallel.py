"""`SpmdFullyShardedDataParallel` (FSDPv2): parameters and activations cut along a mesh's axis `fsdp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

from ..distributed.spmd import (  # noqa: TID252  # found as torch_xla
    Mesh,
    apply_backward_optimization_barrier,
    mark_sharding,
)

AXIS = "fsdp"


class SpmdFullyShardedDataParallel(torch.nn.Module):
    """A module whose parameters lie in parts over the cores; they are gathered where they are needed.

    Args:
        module: On the device `xla`. Parameters that lie in parts already stay as they are.
        mesh: With an axis `fsdp`.
        shard_output: Called with the module's output and the mesh, to say how it lies; by default its first
            tensor is cut along its first dimension.
        shard_param: Says by which axes a parameter is cut, one entry a dimension; by default by its first.

    Raises:
        XlaError: The mesh has no such axis, or the module is elsewhere or wrapped already.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        mesh: Mesh,
        shard_output: Callable[[Any, Mesh], None] | None = None,
        shard_param: Callable[[torch.Tensor], Any] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(module, SpmdFullyShardedDataParallel):
            raise XlaError("The module is wrapped already: wrap inner modules first, and each once.")
        if AXIS not in mesh.axis_names:
            raise XlaError(
                f"The mesh has the axes {list(mesh.axis_names)}: name the one to cut along {AXIS!r}."
            )
        super().__init__()
        self._orig_module, self._mesh = module, mesh
        self._shard_output = shard_output or _shard_first
        for parameter in module.parameters():
            is_marked = isinstance(parameter, XlaTensor) and parameter.lazy.sharding is not None
            if parameter.dim() and not is_marked:
                spec = (shard_param or _first_dimension)(parameter)
                mark_sharding(parameter, mesh, spec)
        apply_backward_optimization_barrier(module)

    @property
    def module(self) -> torch.nn.Module:
        """The module inside."""
        return self._orig_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output, which lies in parts."""
        output = self._orig_module(*args, **kwargs)
        self._shard_output(output, self._mesh)
        return output

    def __getattr__(self, name: str) -> Any:
        """What the module inside has."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_module"), name)

    def __getitem__(self, key: int) -> torch.nn.Module:
        """A part of the module inside."""
        part: torch.nn.Module = self._orig_module[key]
        return part


def _first_dimension(tensor: torch.Tensor) -> tuple[str | None, ...]:
    return (AXIS, *[None] * (tensor.dim() - 1))


def _shard_first(output: Any, mesh: Mesh) -> None:
    tensor = output[0] if isinstance(output, tuple) else output
    if not isinstance(tensor, torch.Tensor):
        raise XlaError(
            f"The module's output is a {type(output).__name__}: say with shard_output how its tensors lie."
        )
    mark_sharding(tensor, mesh, _first_dimension(tensor))
