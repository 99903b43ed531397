"""`XlaFullyShardedDataParallel`: a module whose parameters are whole only while it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ...core import xla_model as xm  # noqa: TID252  # found as torch_xla
from .shards import Gather, Resharding, Shard, Sharing, padded, plain_name
from .wrap import Policy, wrap_children

SEPARATOR = "_FSDP_SHARD_SEPARATOR_"
"""Stands for the dots of a parameter's name in the name of its part, as in PyTorch/XLA."""


class XlaFullyShardedDataParallel(nn.Module):
    """Wraps a module: each rank keeps a part of its parameters, gradients and optimizer state.

    Args:
        module: What is wrapped; its parameters are cut, and moved to the device.
        reshard_after_forward: Gather again in the backward pass instead of keeping whole parameters.
        compute_dtype: Element type in which the module computes.
        buffer_dtype: Element type of its floating-point buffers; that of `compute_dtype` by default.
        fp32_reduce_scatter: Reduce gradients in the parts' element type.
        sharding_groups: Ranks that share the parameters; all of the job by default.
        sharding_rank: This process's place in its group.
        sharding_world_size: Size of the group.
        auto_wrap_policy: Which modules inside are wrapped by themselves first.
        auto_wrapper_callable: What wraps them; this class by default.
        param_init_fn: Gives a module on the device "meta" its values.
        **others: Options of PyTorch/XLA that concern its compiler, e.g. `flatten_parameters`.

    Raises:
        RuntimeError: The module is wrapped already.
    """

    def __init__(
        self,
        module: nn.Module,
        reshard_after_forward: bool = True,
        compute_dtype: torch.dtype | None = None,
        buffer_dtype: torch.dtype | None = None,
        fp32_reduce_scatter: bool = False,
        sharding_groups: list[list[int]] | None = None,
        sharding_rank: int | None = None,
        sharding_world_size: int | None = None,
        auto_wrap_policy: Policy | None = None,
        auto_wrapper_callable: Callable[..., nn.Module] | None = None,
        param_init_fn: Callable[[nn.Module], None] | None = None,
        **others: Any,
    ) -> None:
        if isinstance(module, XlaFullyShardedDataParallel):
            raise RuntimeError("The module is wrapped already: wrap the modules inside it first, then it.")
        super().__init__()
        if auto_wrap_policy is not None:
            options = {
                "reshard_after_forward": reshard_after_forward, "compute_dtype": compute_dtype,
                "buffer_dtype": buffer_dtype, "fp32_reduce_scatter": fp32_reduce_scatter,
                "sharding_groups": sharding_groups, "sharding_rank": sharding_rank,
                "sharding_world_size": sharding_world_size, "param_init_fn": param_init_fn, **others,
            }  # fmt: skip
            wrapper = auto_wrapper_callable or XlaFullyShardedDataParallel
            wrap_children(module, auto_wrap_policy, partial(wrapper, **options))
        _materialise(module, param_init_fn)
        self.reshard_after_forward = reshard_after_forward
        self.compute_dtype = compute_dtype or torch.float32
        self.sharding_groups = sharding_groups
        self.rank = xm.get_ordinal() if sharding_rank is None else sharding_rank
        self.world_size = xm.xrt_world_size() if sharding_world_size is None else sharding_world_size
        sharing = Sharing(
            sharding_groups, self.rank, self.world_size, self.compute_dtype, fp32_reduce_scatter
        )
        self._shards = list(_cut(module, sharing))
        for shard in self._shards:
            self.register_parameter(f"_fsdp_shard{SEPARATOR}{shard.name.replace('.', SEPARATOR)}", shard.own)
        self._fsdp_wrapped_module = module
        _move_buffers(module, buffer_dtype or self.compute_dtype)

    @property
    def module(self) -> nn.Module:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        """What the wrapped module has."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: int) -> Any:
        """A part of a wrapped `nn.Sequential`."""
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped module with whole parameters."""
        args, kwargs = pytree.tree_map(self._narrowed, (args, kwargs))
        with self._whole_parameters():
            return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Only add gradients up in the block; the first backward pass after it reduces them."""
        shards = self._all_shards()
        for shard in shards:
            shard.is_synchronised = False
        try:
            yield
        finally:
            for shard in shards:
                shard.is_synchronised = True

    def clip_grad_norm_(
        self, max_norm: float, norm_type: float = 2.0, groups: list[list[int]] | None = None
    ) -> torch.Tensor:
        """Make the norm of all gradients together `max_norm` at most.

        Args:
            max_norm: The largest norm that is left as it is.
            norm_type: Its order; `inf`: the largest gradient.
            groups: Ranks over which it is; those that share the parameters by default.

        Returns:
            The norm before.
        """
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        norms = torch.stack([torch.linalg.vector_norm(gradient, norm_type) for gradient in gradients])
        groups = groups or self.sharding_groups
        if norm_type == float("inf"):
            total = self.all_reduce_op(xm.REDUCE_MAX, norms.max(), groups=groups)
        else:
            total = self.all_reduce_op(xm.REDUCE_SUM, (norms**norm_type).sum(), groups=groups)
            total = total ** (1.0 / norm_type)
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.detach().mul_(factor)
        return total

    def all_reduce_op(
        self, reduce_type: str, tensor: torch.Tensor, groups: list[list[int]] | None = None
    ) -> torch.Tensor:
        """A tensor reduced over ranks."""
        reduced: torch.Tensor = xm.all_reduce(reduce_type, tensor, groups=groups)
        return reduced

    def get_shard_metadata(self) -> dict[str, Any]:
        """What `consolidate_sharded_model_checkpoints` needs besides the state of all ranks."""
        return {"world_size": self.world_size, "rank": self.rank, "shard_info": dict(self._shard_info())}

    def _shard_info(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for path, wrapper in self.named_modules():
            if isinstance(wrapper, XlaFullyShardedDataParallel):
                for shard in wrapper._shards:
                    name = f"_fsdp_shard{SEPARATOR}{shard.name.replace('.', SEPARATOR)}"
                    key = f"{path}.{name}" if path else name
                    whole = f"{path}.{shard.name}" if path else shard.name
                    yield key, {"name": plain_name(whole), "shape": tuple(shard.shape)}

    def _all_shards(self) -> list[Shard]:
        wrappers = (each for each in self.modules() if isinstance(each, XlaFullyShardedDataParallel))
        return [shard for wrapper in wrappers for shard in wrapper._shards]

    def _narrowed(self, value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(self.compute_dtype) if is_float and self.compute_dtype != torch.float32 else value

    @contextmanager
    def _whole_parameters(self) -> Iterator[None]:
        wholes = [(shard, Gather.apply(shard.own, shard)) for shard in self._shards]
        with ExitStack() as stack:
            if self.reshard_after_forward:
                stack.enter_context(Resharding(wholes))
            for shard, whole in wholes:
                shard.show(whole)
                stack.callback(shard.show, shard.own)
            yield


def _materialise(module: nn.Module, initialise: Callable[[nn.Module], None] | None) -> None:
    """Give modules on the device "meta" their values."""
    for each in module.modules():
        if not any(
            value.is_meta for value in (*each.parameters(recurse=False), *each.buffers(recurse=False))
        ):
            continue
        if initialise is not None:
            initialise(each)
        else:
            each.to_empty(device="cpu", recurse=False)
            each.reset_parameters()


def _cut(module: nn.Module, sharing: Sharing) -> Iterator[Shard]:
    """Cut the parameters that no wrapper inside has; a parameter in two places is one."""
    places: dict[nn.Parameter, list[tuple[str, nn.Module, str]]] = {}
    for path, owner in _outside_wrappers(module, ""):
        for name, parameter in list(owner._parameters.items()):
            if parameter is not None:
                places.setdefault(parameter, []).append((f"{path}{name}", owner, name))
                del owner._parameters[name]
    for parameter, found in places.items():
        flat = padded(parameter.detach().cpu().reshape(-1), sharing.size).float()
        own = flat.chunk(sharing.size)[sharing.rank].clone().to(xm.xla_device())
        part = nn.Parameter(own, requires_grad=parameter.requires_grad)
        shard = Shard(
            found[0][0], [(owner, name) for _, owner, name in found], part, parameter.shape, sharing
        )
        shard.show(part)
        yield shard


def _outside_wrappers(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    if isinstance(module, XlaFullyShardedDataParallel):
        return
    yield prefix, module
    for name, child in module.named_children():
        yield from _outside_wrappers(child, f"{prefix}{name}.")


def _move_buffers(module: nn.Module, dtype: torch.dtype) -> None:
    for _, owner in _outside_wrappers(module, ""):
        for name, buffer in owner._buffers.items():
            if buffer is not None:
                wanted = dtype if buffer.is_floating_point() else buffer.dtype
                owner._buffers[name] = buffer.to(xm.xla_device(), wanted)
