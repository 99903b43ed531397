"""`torch_xla.distributed.fsdp.wrap`: which modules inside a model are wrapped by themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from torch import nn

Policy = Callable[..., bool]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every module."""
    return True


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, unwrapped_params: int, lambda_fn: Callable[[nn.Module], bool]
) -> bool:
    """Wrap modules of which a function says so."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    unwrapped_params: int,
    transformer_layer_cls: Collection[type[nn.Module]],
) -> bool:
    """Wrap modules of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: nn.Module, recurse: bool, unwrapped_params: int, min_num_params: int = 100_000_000, **_: Any
) -> bool:
    """Wrap modules with many parameters."""
    is_list = isinstance(module, (nn.ModuleList, nn.ModuleDict))
    return unwrapped_params >= min_num_params and (recurse or not is_list)


def wrap_children(module: nn.Module, policy: Policy, wrapper: Callable[[nn.Module], nn.Module]) -> int:
    """Wrap what a policy chooses inside a module, innermost first, in place.

    Returns:
        Parameters that are wrapped now.
    """
    wrapped = 0
    for name, child in list(module.named_children()):
        count = sum(parameter.numel() for parameter in child.parameters())
        if not policy(module=child, recurse=True, unwrapped_params=count):
            continue
        inside = wrap_children(child, policy, wrapper)
        if policy(module=child, recurse=False, unwrapped_params=count - inside):
            module.register_module(name, wrapper(child))
            inside = count
        wrapped += inside
    return wrapped
