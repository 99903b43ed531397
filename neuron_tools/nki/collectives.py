"""`nki.collectives`: communication between ranks from inside a kernel.

A kernel is simulated on its own: a replica group of one rank moves its data, as on the chip; larger groups
are refused, because the other ranks' data is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.isa.dma import dma_copy
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tensor import NkiTensor

Tensors = Sequence[NkiTensor]


class ReplicaGroup:
    """Ranks that communicate: a list of groups, each a list of ranks."""

    def __init__(self, groups: Any = None, **_options: Any) -> None:
        self.groups = (
            [[0]] if groups is None else [list(g) if isinstance(g, (list, tuple)) else [g] for g in groups]
        )

    @property
    def size(self) -> int:
        """Ranks of the largest group."""
        return max((len(group) for group in self.groups), default=1)


def _require_one(call: str, group: Any) -> None:
    size = group.size if isinstance(group, ReplicaGroup) else ReplicaGroup(group).size
    if size > 1:
        raise NkiValidationError(
            f"{call} over {size} ranks needs the data of other ranks, which a kernel simulated on its own "
            "does not have; simulate it with a replica group of one rank",
            tracing.where(),
        )


def _move(call: str, srcs: Tensors, dsts: Tensors, group: Any) -> None:
    _require_one(call, group)
    for src, dst in zip(srcs, dsts):
        dma_copy(dst if dst.shape == src.shape else dst.reshape(src.shape), src)


def all_reduce(
    srcs: Tensors, dsts: Tensors, replica_group: Any, op: Any = None, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Reduction over all ranks, everywhere."""
    _move("all_reduce", srcs, dsts, replica_group)


def all_gather(
    srcs: Tensors, dsts: Tensors, replica_group: Any, collective_dim: int = 0, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Parts of all ranks joined, everywhere."""
    _move("all_gather", srcs, dsts, replica_group)


def all_gather_v(
    srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: Any = None, **_options: Any
) -> None:
    """Parts of different sizes of all ranks joined, everywhere."""
    _move("all_gather_v", srcs, dsts, replica_group)


def reduce_scatter(
    srcs: Tensors, dsts: Tensors, replica_group: Any, collective_dim: int = 0, op: Any = None,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Reduction over all ranks, each keeping its part."""
    _move("reduce_scatter", srcs, dsts, replica_group)


def all_to_all(
    srcs: Tensors, dsts: Tensors, replica_group: Any, collective_dim: int = 0, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's parts sent to the others."""
    _move("all_to_all", srcs, dsts, replica_group)


def all_to_all_v(
    srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: Any = None, **_options: Any
) -> None:
    """Parts of different sizes sent to the others."""
    _move("all_to_all_v", srcs, dsts, replica_group)


def collective_permute(
    srcs: Tensors, dsts: Tensors, source_target_pairs: Sequence[tuple[int, int]],
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's tensors sent to one other."""
    others = [pair for pair in source_target_pairs if pair[0] != pair[1]]
    _move("collective_permute", srcs, dsts, ReplicaGroup([[0, 1]]) if others else ReplicaGroup())


def collective_permute_implicit(
    srcs_by_channel: Sequence[Tensors], dsts_by_channel: Sequence[Tensors], replica_group: Any,
    channel_ids: Sequence[int] = (0,), priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's tensors sent to the next, per channel."""
    for srcs, dsts in zip(srcs_by_channel, dsts_by_channel):
        _move("collective_permute_implicit", srcs, dsts, replica_group)


def collective_permute_implicit_reduce(
    srcs0_by_channel: Sequence[Tensors], srcs1_by_channel: Sequence[Tensors],
    dsts_by_channel: Sequence[Tensors], replica_group: Any, op: Any = None,
    channel_ids: Sequence[int] = (0,), priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's tensors reduced with the received ones and sent on."""
    from neuron_tools.nki.isa.dma import dma_compute

    _require_one("collective_permute_implicit_reduce", replica_group)
    for first, second, dsts in zip(srcs0_by_channel, srcs1_by_channel, dsts_by_channel):
        for left, right, dst in zip(first, second, dsts):
            dma_compute(dst, [left, right], op or "add")


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int, replica_group: Any, channel_id: int = 0, name: str | None = None
) -> VirtualRegister:
    """Rank whose data an iteration works on."""
    _require_one("collective_permute_implicit_current_processing_rank_id", replica_group)
    return VirtualRegister(0)


def rank_id(name: str | None = None) -> VirtualRegister:
    """The rank that runs the kernel: 0."""
    return VirtualRegister(0)


__all__ = [
    "ReplicaGroup", "all_gather", "all_gather_v", "all_reduce", "all_to_all", "all_to_all_v",
    "collective_permute", "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id", "collective_permute_implicit_reduce", "rank_id",
    "reduce_scatter",
]  # fmt: skip
