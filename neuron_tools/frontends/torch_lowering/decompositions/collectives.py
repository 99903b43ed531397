"""Collectives in graphs: each becomes one operation of its ranks' programs, waiting for it nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.decompositions.registry import replaces
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes
from neuron_tools.frontends.torch_lowering.meshes import groups_of

NAMESPACE = "_c10d_functional"
OPCODES: Mapping[str, str] = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "broadcast": "collective_broadcast",
}
"""PyTorch's functional collective -> StableHLO opcode."""
_REDUCING = ("all_reduce", "reduce_scatter")


@replaces(f"{NAMESPACE}::wait_tensor")
def _wait_tensor(tensor: Any) -> Any:
    """In a graph an operation waits for what it reads by itself."""
    return tensor


def _maker(opcode: str) -> Callable[[fx.Node], Intrinsic | None]:
    def make(node: fx.Node) -> Intrinsic | None:
        ranks = ranks_of(node.args[-1])
        if ranks is None:
            return None
        attributes = {"replica_groups": ranks, "replica_groups_shape": (1, len(ranks))}
        reduction = {"reduction": node.args[1]} if opcode in _REDUCING else {}
        return Intrinsic(opcode, {**attributes, **reduction})

    return make


def ranks_of(group: Any) -> tuple[int, ...] | None:
    """The ranks of a group, given as itself or by its name; None for one that there is not."""
    import torch.distributed as dist

    if groups := groups_of(group):
        return groups[0]
    try:
        resolved = dist.distributed_c10d._resolve_process_group(group) if isinstance(group, str) else group
        return tuple(dist.get_process_group_ranks(resolved))
    except (RuntimeError, ValueError, KeyError):
        return None


if torch.distributed.is_available():
    for _name, _opcode in OPCODES.items():
        becomes(f"{NAMESPACE}::{_name}", _maker(_opcode))
