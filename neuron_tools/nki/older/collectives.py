"""Communication between ranks as the older dialect spells it: operator first, keyword arguments."""

from __future__ import annotations

from typing import Any

from neuron_tools.nki import collectives
from neuron_tools.nki.collectives import Tensors


def all_reduce(
    op: Any, srcs: Tensors, dsts: Tensors, replica_groups: Any, dtype: Any = None, **_o: Any
) -> None:
    """Reduction over all ranks, everywhere."""
    collectives.all_reduce(srcs, dsts, collectives.ReplicaGroup(replica_groups), op)


def reduce_scatter(
    op: Any, srcs: Tensors, dsts: Tensors, replica_groups: Any, dtype: Any = None, **_options: Any
) -> None:
    """Reduction over all ranks, each keeping its part."""
    collectives.reduce_scatter(srcs, dsts, collectives.ReplicaGroup(replica_groups), op=op)


def all_gather(
    op: Any, srcs: Tensors, dsts: Tensors, replica_groups: Any, all_gather_dim: int = 0, dtype: Any = None,
    **_options: Any,
) -> None:  # fmt: skip
    """Parts of all ranks joined, everywhere."""
    collectives.all_gather(srcs, dsts, collectives.ReplicaGroup(replica_groups), all_gather_dim)


def all_to_all(
    op: Any, srcs: Tensors, dsts: Tensors, replica_groups: Any, split_dim: int = 0, concat_dim: int = 0,
    dtype: Any = None, **_options: Any,
) -> None:  # fmt: skip
    """Each rank's parts sent to the others."""
    collectives.all_to_all(srcs, dsts, collectives.ReplicaGroup(replica_groups), split_dim)


def collective_permute(srcs: Tensors, dsts: Tensors, source_target_pairs: Any, **_options: Any) -> None:
    """Each rank's tensors sent to one other."""
    collectives.collective_permute(srcs, dsts, source_target_pairs)
