"""`nki.collectives`: communication between ranks from inside a kernel.

Each call becomes one transfer on the stream of collectives, which the simulator times over the links between
the ranks. Values need the other ranks: `ranks.run_ranks` runs them in one process, and under
`torch.distributed` each process is one. A kernel that is simulated on its own has a group of one rank only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.nki import ranks
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.isa.dma import dma_copy
from neuron_tools.nki.isa.issue import form_of, issue, ready, refuse
from neuron_tools.nki.kinds import Kind, Transfer
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import exact, write
from neuron_tools.simulator.program import CollectiveKind, Engine, Memory

Array = npt.NDArray[Any]
Tensors = Sequence[NkiTensor]
Combine = Callable[[list[Array], int], Array | None]
"""From what every rank of the group gave, and this one's place among them, to what this one gets."""


class ReplicaGroup:
    """Ranks that communicate: a list of groups, each a list of ranks."""

    def __init__(self, groups: Any = None, **_options: Any) -> None:
        if isinstance(groups, ReplicaGroup):
            groups = groups.groups
        self.groups: list[list[int]] = (
            [[0]] if groups is None else [list(g) if isinstance(g, (list, tuple)) else [g] for g in groups]
        )

    @property
    def size(self) -> int:
        """Ranks of the largest group."""
        return max((len(group) for group in self.groups), default=1)

    def __repr__(self) -> str:
        return f"ReplicaGroup({self.groups})"

    def of(self, rank: int) -> tuple[int, ...]:
        """The group that a rank is in; the first where it is in none."""
        found = next((group for group in self.groups if rank in group), self.groups[0])
        return tuple(found)


def _group(replica_group: Any) -> tuple[int, ...]:
    """The group of the rank that runs."""
    return ReplicaGroup(replica_group).of(_rank())


def _rank() -> int:
    found = ranks.communicator()
    return found.rank if found is not None else 0


def _meet(
    call: str, kind: CollectiveKind, group: tuple[int, ...], pairs: Sequence[tuple[NkiTensor, NkiTensor]],
    combine: Combine,
) -> None:  # fmt: skip
    """One collective per (source, destination); in a group of one rank, a copy; nothing outside the group."""
    found = ranks.communicator()
    if found is not None and len(group) > 1 and found.rank not in group:
        return
    for src, dst in pairs:
        if len(group) <= 1:
            dma_copy(dst if dst.shape == src.shape else dst.reshape(src.shape), src)
            continue
        _record(call, kind, group, src, dst)
        if ready().values:
            _compute(call, group, src, dst, combine)


def _record(call: str, kind: CollectiveKind, group: tuple[int, ...], src: NkiTensor, dst: NkiTensor) -> None:
    trace = ready()
    forms = form_of(dst), form_of(src)
    key = (call, kind, group, *forms)
    known = trace.kinds.get(key)
    if known is None:
        if src.buffer.is_on_chip or dst.buffer.is_on_chip:
            raise refuse(f"{call} moves tensors in HBM, got {src.buffer} and {dst.buffer}")
        size = max(src.size * src.dtype.itemsize, dst.size * dst.dtype.itemsize)
        transfer = Transfer(Memory.HBM, Memory.HBM, src.dtype.chip, size, min(size, 1 << 30), 0,
                            engine=Engine.SYNC, collective=kind, group=group)  # fmt: skip
        known = trace.add_kind(key, Kind(call, transfer=transfer))
    issue(trace, known, dst, src)


def _compute(call: str, group: tuple[int, ...], src: NkiTensor, dst: NkiTensor, combine: Combine) -> None:
    found = ranks.communicator()
    if found is None:
        raise NkiValidationError(
            f"{call} over {len(group)} ranks needs the data of other ranks, which a kernel simulated on its "
            "own does not have; run the ranks together (neuron_tools.nki.ranks.run_ranks, or torchrun with "
            "torch.distributed), or time it without values",
            tracing.where(),
        )
    given = found.exchange(group, exact(src).copy())
    result = combine(given, group.index(found.rank))
    if result is not None:
        write(dst, np.asarray(result).reshape(dst.shape))


def _reduced(op: Any) -> Callable[[list[Array]], Array]:
    function = find_operator(op or "add").function

    def reduce(arrays: list[Array]) -> Array:
        total = arrays[0].astype(np.float32)
        for array in arrays[1:]:
            total = function(total, array.astype(np.float32))
        return np.asarray(total)

    return reduce


def all_reduce(
    srcs: Tensors, dsts: Tensors, replica_group: Any, op: Any = None, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Reduction over all ranks, everywhere."""
    reduce = _reduced(op)
    _meet("all_reduce", CollectiveKind.ALL_REDUCE, _group(replica_group), list(zip(srcs, dsts)),
          lambda given, _: reduce(given))  # fmt: skip


def all_gather(
    srcs: Tensors, dsts: Tensors, replica_group: Any, collective_dim: int = 0, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Parts of all ranks joined along a dimension, everywhere."""
    _meet("all_gather", CollectiveKind.ALL_GATHER, _group(replica_group), list(zip(srcs, dsts)),
          lambda given, _: np.concatenate(given, collective_dim))  # fmt: skip


def all_gather_v(
    srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: Any = None, **_options: Any
) -> None:
    """Parts of different sizes of all ranks joined, everywhere."""
    _require_one("all_gather_v", replica_group)
    _meet("all_gather_v", CollectiveKind.ALL_GATHER, (0,), list(zip(srcs, dsts)), lambda given, _: given[0])


def reduce_scatter(
    srcs: Tensors, dsts: Tensors, replica_group: Any, collective_dim: int = 0, op: Any = None,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Reduction over all ranks, each keeping its part along a dimension."""
    reduce, group = _reduced(op), _group(replica_group)
    _meet("reduce_scatter", CollectiveKind.REDUCE_SCATTER, group, list(zip(srcs, dsts)),
          lambda given, me: np.split(reduce(given), len(group), collective_dim)[me])  # fmt: skip


def all_to_all(
    srcs: Tensors, dsts: Tensors, replica_group: Any, collective_dim: int = 0, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's parts along a dimension sent to the others; the received ones joined along it."""
    group = _group(replica_group)

    def combine(given: list[Array], me: int) -> Array:
        parts = [np.split(array, len(group), collective_dim)[me] for array in given]
        return np.concatenate(parts, collective_dim)

    _meet("all_to_all", CollectiveKind.ALL_TO_ALL, group, list(zip(srcs, dsts)), combine)


def all_to_all_v(
    srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: Any = None, **_options: Any
) -> None:
    """Parts of different sizes sent to the others."""
    _require_one("all_to_all_v", replica_group)
    _meet("all_to_all_v", CollectiveKind.ALL_TO_ALL, (0,), list(zip(srcs, dsts)), lambda given, _: given[0])


def collective_permute(
    srcs: Tensors, dsts: Tensors, source_target_pairs: Sequence[tuple[int, int]],
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's tensors sent to one other; a rank that nobody sends to keeps what it has."""
    others = [(int(source), int(target)) for source, target in source_target_pairs if source != target]
    group = tuple(sorted({rank for pair in others for rank in pair})) if others else (0,)
    sources = {target: group.index(source) for source, target in others}

    def combine(given: list[Array], me: int) -> Array | None:
        return given[sources[group[me]]] if group[me] in sources else None

    _meet("collective_permute", CollectiveKind.PERMUTE, group, list(zip(srcs, dsts)), combine)


def collective_permute_implicit(
    srcs_by_channel: Sequence[Tensors], dsts_by_channel: Sequence[Tensors], replica_group: Any,
    channel_ids: Sequence[int] = (0,), priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's tensors sent to the next of the ring, per channel."""
    for srcs, dsts in zip(srcs_by_channel, dsts_by_channel):
        _meet("collective_permute_implicit", CollectiveKind.PERMUTE, _group(replica_group),
              list(zip(srcs, dsts)), lambda given, me: given[me - 1])  # fmt: skip


def collective_permute_implicit_reduce(
    srcs0_by_channel: Sequence[Tensors], srcs1_by_channel: Sequence[Tensors],
    dsts_by_channel: Sequence[Tensors], replica_group: Any, op: Any = None,
    channel_ids: Sequence[int] = (0,), priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Each rank's two tensors reduced, and the result sent to the next of the ring, per channel."""
    from neuron_tools.nki.isa.dma import dma_compute

    group = _group(replica_group)
    for first, second, dsts in zip(srcs0_by_channel, srcs1_by_channel, dsts_by_channel):
        for left, right, dst in zip(first, second, dsts):
            if len(group) <= 1:
                dma_compute(dst, [left, right], op or "add")
                continue
            dma_compute(left, [left, right], op or "add")
            _meet("collective_permute_implicit_reduce", CollectiveKind.PERMUTE, group, [(left, dst)],
                  lambda given, me: given[me - 1])  # fmt: skip


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int, replica_group: Any, channel_id: int = 0, name: str | None = None
) -> VirtualRegister:
    """Rank whose data an iteration of the ring works on: this one's at first, then the one before it."""
    group, rank = _group(replica_group), _rank()
    me = group.index(rank) if rank in group else 0
    return VirtualRegister(group[(me - int(iteration_id)) % len(group)])


def rank_id(name: str | None = None) -> VirtualRegister:
    """The rank that runs the kernel; 0 for a kernel that is simulated on its own."""
    return VirtualRegister(_rank())


def _require_one(call: str, replica_group: Any) -> None:
    size = ReplicaGroup(replica_group).size
    if size > 1:
        raise NkiValidationError(
            f"{call} over {size} ranks is not here; use the form for parts of one size", tracing.where()
        )


__all__ = [
    "ReplicaGroup", "all_gather", "all_gather_v", "all_reduce", "all_to_all", "all_to_all_v",
    "collective_permute", "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id", "collective_permute_implicit_reduce", "rank_id",
    "reduce_scatter",
]  # fmt: skip
