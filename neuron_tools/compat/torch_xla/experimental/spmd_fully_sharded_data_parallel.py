"""`SpmdFullyShardedDataParallel` (FSDPv2): parameters and activations cut along a mesh's axis `fsdp`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.tensor import XlaTensor

from ..distributed.fsdp.wrap import Policy, wrap_children  # noqa: TID252  # found as torch_xla
from ..distributed.spmd import (  # noqa: TID252  # found as torch_xla
    Mesh,
    apply_backward_optimization_barrier,
    get_global_mesh,
    mark_sharding,
)

AXIS = "fsdp"


class SpmdFullyShardedDataParallel(torch.nn.Module):
    """A module whose parameters lie in parts over the cores; they are gathered where they are needed.

    Args:
        module: It is moved to the device `xla`. Parameters that lie in parts already stay as they are.
        mesh: With an axis `fsdp`; by default the global one.
        shard_output: Called with the module's output and the mesh, to say how it lies; by default its first
            tensor is cut along its first dimension.
        shard_param: Says by which axes a parameter is cut, one entry a dimension; by default along its
            longest, the first of equal ones.
        auto_wrap_policy: Which modules inside are wrapped by themselves first.
        auto_wrapper_callable: What wraps them; this class by default.
        extra_data_axis: A further axis of the mesh that the output is cut along.

    Raises:
        XlaError: There is no mesh, it has no such axes, the module is wrapped already, or has no `forward`.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        mesh: Mesh | None = None,
        shard_output: Callable[[Any, Mesh], None] | None = None,
        shard_param: Callable[[torch.Tensor], Any] | None = None,
        auto_wrap_policy: Policy | None = None,
        auto_wrapper_callable: Callable[..., torch.nn.Module] | None = None,
        extra_data_axis: str | None = None,
    ) -> None:
        _check_module(module)
        super().__init__()
        self._mesh = _checked(mesh or get_global_mesh(), extra_data_axis)
        self._shard_output = shard_output or partial(_shard_first, extra_axis=extra_data_axis)
        if auto_wrap_policy is not None:
            wrapper = auto_wrapper_callable or SpmdFullyShardedDataParallel
            wrap_children(
                module, auto_wrap_policy, partial(wrapper, mesh=self._mesh, shard_output=shard_output)
            )
        self._orig_module = module.to("xla")
        self._cut_parameters(shard_param or _longest_dimension)
        apply_backward_optimization_barrier(module)

    def _cut_parameters(self, spec_of: Callable[[torch.Tensor], Any]) -> None:
        for parameter in self._orig_module.parameters():
            is_marked = isinstance(parameter, XlaTensor) and parameter.lazy.sharding is not None
            if parameter.dim() and not is_marked:
                mark_sharding(parameter, self._mesh, spec_of(parameter))

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


def _check_module(module: torch.nn.Module) -> None:
    if isinstance(module, SpmdFullyShardedDataParallel):
        raise XlaError("The module is wrapped already: wrap inner modules first, and each once.")
    if getattr(module.forward, "__func__", None) is torch.nn.Module.forward:
        raise XlaError(
            f"A {type(module).__name__} has no forward, so it has no output to lie in parts: wrap the "
            "modules inside it, or the one that calls them."
        )


def _checked(mesh: Mesh | None, extra_axis: str | None) -> Mesh:
    if mesh is None:
        raise XlaError("There is no mesh: give one, or name the program's with set_global_mesh.")
    if AXIS not in mesh.axis_names:
        raise XlaError(f"The mesh has the axes {list(mesh.axis_names)}: name the one to cut along {AXIS!r}.")
    if extra_axis is not None and extra_axis not in mesh.axis_names:
        raise XlaError(
            f"The mesh has the axes {list(mesh.axis_names)} and extra_data_axis is {extra_axis!r}."
        )
    return mesh


def _longest_dimension(tensor: torch.Tensor) -> tuple[str | None, ...]:
    longest = tensor.shape.index(max(tensor.shape))
    return tuple(AXIS if dimension == longest else None for dimension in range(tensor.dim()))


def _shard_first(output: Any, mesh: Mesh, extra_axis: str | None = None) -> None:
    tensor = output[0] if isinstance(output, tuple) else output
    if not isinstance(tensor, torch.Tensor):
        raise XlaError(
            f"The module's output is a {type(output).__name__}: say with shard_output how its tensors lie."
        )
    axes = AXIS if extra_axis is None else (extra_axis, AXIS)
    mark_sharding(tensor, mesh, (axes, *[None] * (tensor.dim() - 1)))
