"""`nki.collectives`: communication between ranks from inside a kernel.

Each call becomes one transfer on the stream of collectives, which the simulator times over the links between
the ranks. Values need the other ranks: `ranks.run_ranks` runs them in one process, and under
`torch.distributed` each process is one. A kernel that is simulated on its own has a group of one rank only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.backend.kinds import Kind, Transfer
from neuron_tools.nki import ranks
from neuron_tools.nki.isa.dma import dma_copy
from neuron_tools.nki.isa.instruction import NkiInstruction, issued
from neuron_tools.nki.isa.issue import form_of, issue, ready, refuse
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.registers import VirtualRegister
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import exact, write
from neuron_tools.records.program import CollectiveKind, Engine, Memory

_HBM_ONLY = ("all_gather_v", "all_to_all", "all_to_all_v")
_SLOT = "prepared collective"
Tensors = Sequence[NkiTensor]
Combine = Callable[[list[Array], int], Array | None]
"""From what every rank of the group gave, and this one's place among them, to what this one gets."""


class rg_partition_op(Enum):
    """How `ReplicaGroup.from_partition_op` tells the group of a rank."""

    bitwise_and = "and"
    div = "div"
    mod = "mod"

    def apply(self, rank: int, operand: int) -> int:
        """The number of the rank's group."""
        if self is rg_partition_op.bitwise_and:
            return rank & operand
        return rank // operand if self is rg_partition_op.div else rank % operand


class ReplicaGroup:
    """Ranks that communicate: a list of groups, each a list of ranks."""

    def __init__(self, groups: Any = None, **_options: Any) -> None:
        if isinstance(groups, ReplicaGroup):
            groups = groups.groups
        self.groups: list[list[int]] = (
            [[0]] if groups is None else [list(g) if isinstance(g, (list, tuple)) else [g] for g in groups]
        )

    @staticmethod
    def from_partition_op(world_size: int, op: rg_partition_op, operand: int) -> ReplicaGroup:
        """Groups of the ranks below `world_size` for which `op(rank, operand)` is the same."""
        groups: dict[int, list[int]] = {}
        for rank in range(world_size):
            groups.setdefault(op.apply(rank, operand), []).append(rank)
        return ReplicaGroup([groups[number] for number in sorted(groups)])

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
        _require_reach(call, src, dst)
        size = max(src.size * src.dtype.itemsize, dst.size * dst.dtype.itemsize)
        transfer = Transfer(src.form.memory, dst.form.memory, src.dtype.chip, size, min(size, 1 << 30), 0,
                            engine=Engine.SYNC, collective=kind, group=group)  # fmt: skip
        known = trace.add_kind(key, Kind(call, transfer=transfer))
    issue(trace, known, dst, src)


def _require_reach(call: str, src: NkiTensor, dst: NkiTensor) -> None:
    """Refuse memories that a collective cannot move data between."""
    memories = {src.form.memory, dst.form.memory}
    if len(memories) > 1 or Memory.PSUM in memories:
        raise refuse(
            f"{call} moves tensors that all lie in HBM or all in SBUF, got {src.buffer} and {dst.buffer}"
        )
    if Memory.SBUF in memories and call in _HBM_ONLY:
        raise refuse(f"{call} moves tensors in HBM only, got {src.buffer}; copy them there first")


def _compute(call: str, group: tuple[int, ...], src: NkiTensor, dst: NkiTensor, combine: Combine) -> None:
    result = combine(_exchanged(call, group, exact(src).copy()), group.index(_rank()))
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
    srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: NkiTensor,
    recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """One chunk of each rank, of a size of its own, sent to all; tensors count as flat lists of elements.

    Args:
        srcs: One tensor, of which each rank sends the chunk that its metadata tell.
        dsts: One tensor. A rank's chunk lands at its place in the group x 1 / (ranks of the group) of it, or
            where its receive displacement says.
        replica_group: Who takes part.
        metadata_tensor: uint32 (2 to 4, ranks): counts to send, displacements to send from (first column),
            counts to receive, displacements to receive at.
        recv_counts_known: Whether the third row is filled.
        has_rdispls: Whether the fourth row is filled.
    """
    _scatter("all_gather_v", CollectiveKind.ALL_GATHER, srcs, dsts, replica_group, metadata_tensor,
             has_rdispls, lambda sent, _: (sent[0, 0], sent[1, 0]))  # fmt: skip


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
    srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: NkiTensor,
    recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """A chunk of its own for every other rank, of any size; tensors count as flat lists of elements.

    Args:
        srcs: One tensor, of which the chunk of each rank of the group is sent to it.
        dsts: One tensor; chunks land as in `all_gather_v`.
        replica_group: Who takes part.
        metadata_tensor: As in `all_gather_v`, with a column of counts and displacements per destination.
        recv_counts_known: Whether the third row is filled.
        has_rdispls: Whether the fourth row is filled.
    """
    _scatter("all_to_all_v", CollectiveKind.ALL_TO_ALL, srcs, dsts, replica_group, metadata_tensor,
             has_rdispls, lambda sent, me: (sent[0, me], sent[1, me]))  # fmt: skip


def _in_two_parts(
    call: Callable[..., None],
) -> tuple[Callable[..., NkiInstruction], Callable[..., NkiInstruction]]:
    """The functions that begin and complete a collective, which reads and writes when it is completed."""
    name = call.__name__

    def prepare(
        srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: NkiTensor,
        recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None,
        name: str | None = None,
    ) -> NkiInstruction:  # fmt: skip
        return _prepare(call, srcs, dsts, replica_group, metadata_tensor, has_rdispls)

    def trigger(prepare_instr: NkiInstruction, name: str | None = None) -> NkiInstruction:
        return _trigger(call, prepare_instr)

    prepare.__name__, trigger.__name__ = f"{name}_prepare", f"{name}_trigger"
    prepare.__doc__ = f"Begin `{name}` of these arguments, which `{name}_trigger` completes."
    trigger.__doc__ = f"Complete the `{name}` that was begun: it reads and writes its tensors now."
    return prepare, trigger


def _prepare(
    call: Callable[..., None], srcs: Tensors, dsts: Tensors, replica_group: Any, metadata_tensor: NkiTensor,
    has_rdispls: bool,
) -> NkiInstruction:  # fmt: skip
    """Keep a collective in the one slot that there is; its metadata must have been written."""
    trace = ready()
    if trace.shared.get(_SLOT) is not None:
        raise refuse(
            f"{call.__name__}_prepare comes before the collective prepared earlier was triggered, and there "
            "is one slot; trigger that one first"
        )
    if form_of(metadata_tensor) is not None and not metadata_tensor.backing.complete:
        trace.check_read(metadata_tensor)
    handle = issued()
    trace.shared[_SLOT] = handle, call, (srcs, dsts, replica_group, metadata_tensor), has_rdispls
    return handle


def _trigger(call: Callable[..., None], prepare_instr: NkiInstruction) -> NkiInstruction:
    """Run the collective that was prepared."""
    trace = ready()
    prepared = trace.shared.get(_SLOT)
    if prepared is None or prepared[0] is not prepare_instr or prepared[1] is not call:
        raise refuse(
            f"{call.__name__}_trigger takes what the last {call.__name__}_prepare returned, once; prepare "
            "the collective first"
        )
    trace.shared[_SLOT] = None
    call(*prepared[2], has_rdispls=prepared[3])
    return issued()


all_gather_v_prepare, all_gather_v_trigger = _in_two_parts(all_gather_v)
all_to_all_v_prepare, all_to_all_v_trigger = _in_two_parts(all_to_all_v)


def _scatter(
    call: str, kind: CollectiveKind, srcs: Tensors, dsts: Tensors, replica_group: Any,
    metadata_tensor: NkiTensor, has_rdispls: bool, chunk: Callable[[Array, int], tuple[int, int]],
) -> None:  # fmt: skip
    """Chunks of sizes that are known only when running: `chunk(metadata, me)` tells one's count and start."""
    if len(srcs) != 1 or len(dsts) != 1:
        raise refuse(f"{call} takes exactly one source and one destination")
    if metadata_tensor.ndim != 2 or not 2 + 2 * has_rdispls <= metadata_tensor.shape[0] <= 4:
        raise refuse(
            f"{call} takes metadata of shape ({'4' if has_rdispls else '2 to 4'}, ranks), got "
            f"{metadata_tensor.shape}"
        )
    group, src, dst = _group(replica_group), srcs[0], dsts[0]
    _record(call, kind, group, src, dst)
    if ready().values:
        metadata = exact(metadata_tensor).astype(np.int64)
        given = list(zip(_exchanged(call, group, metadata), _exchanged(call, group, _flat(src))))
        me = group.index(_rank()) if _rank() in group else 0
        chunks = [_chunk(call, values, *chunk(sent, me)) for sent, values in given]
        write(dst, _landed(call, _flat(dst), chunks, metadata[3] if has_rdispls else None).reshape(dst.shape))


def _flat(tensor: NkiTensor) -> Array:
    values: Array = exact(tensor).reshape(-1).copy()
    return values


def _chunk(call: str, values: Array, count: int, start: int) -> Array:
    if start + count > values.size:
        raise refuse(f"{call}: {count} elements from {start} on do not lie within the {values.size} given")
    return values[start : start + count]


def _landed(call: str, held: Array, chunks: Sequence[Array], places: Array | None) -> Array:
    """What a destination holds once the chunks are in their slots, or at their places."""
    slot = held.size // len(chunks)
    for sender, chunk in enumerate(chunks):
        target = sender * slot if places is None else int(places[sender])
        room = slot if places is None else held.size - target
        if chunk.size > room:
            raise refuse(f"{call}: {chunk.size} elements arrive from place {sender} of the group, but their "
                         f"room in the destination is {room}")  # fmt: skip
        held[target : target + chunk.size] = chunk
    return held


def _exchanged(call: str, group: tuple[int, ...], values: Array) -> list[Array]:
    """What every rank of the group gave."""
    if len(group) <= 1:
        return [values]
    found = ranks.communicator()
    if found is None:
        raise refuse(
            f"{call} over {len(group)} ranks needs the data of other ranks, which a kernel simulated on its "
            "own does not have; run the ranks together (neuron_tools.nki.ranks.run_ranks, or torchrun with "
            "torch.distributed), or time it without values"
        )
    return found.exchange(group, values)


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


__all__ = [
    "ReplicaGroup", "all_gather", "all_gather_v", "all_gather_v_prepare", "all_gather_v_trigger",
    "all_reduce", "all_to_all", "all_to_all_v", "all_to_all_v_prepare", "all_to_all_v_trigger",
    "collective_permute", "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id", "collective_permute_implicit_reduce", "rank_id",
    "reduce_scatter", "rg_partition_op",
]  # fmt: skip
