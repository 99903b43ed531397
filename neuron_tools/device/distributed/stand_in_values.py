"""Values of collectives of which only some ranks run: the others are taken to bring what this one does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from neuron_tools.device.distributed.host_values import HostValues, Rows, host_alias


class StandInValues:
    """The methods of HostValues for a group whose other ranks do not run, or not all of them.

    The values are no job's: they have the right shapes, and what a rank gathers can be read.

    Args:
        store: Where the ranks that run find each other.
        place: Of this rank among those that run.
        running: Ranks of the group that run.
        size: Of the group.
        rank: Of this process in the group.
    """

    def __init__(
        self, store: dist.Store, place: int, running: int, size: int, rank: int, timeout: timedelta
    ) -> None:
        self.gloo: Any = None
        if running > 1:
            self.gloo = dist.ProcessGroupGloo(store, place, running, timeout=timeout)
        self.rank, self.size = rank, size

    def broadcast(self, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """All ranks have the same already."""

    def all_reduce_each(self, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """Sums of equal parts."""
        for tensor in tensors:
            self._reduce(host_alias(tensor), options)

    def all_reduce(self, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """Sums of equal parts."""
        self.all_reduce_each(tensors, options)

    def reduce(self, tensor: torch.Tensor, options: Any) -> None:
        """A sum of equal parts, for rank `options.rootRank` alone."""
        if options.rootRank == self.rank:
            self._reduce(host_alias(tensor), options)

    def all_gather(
        self, outputs: Sequence[Sequence[torch.Tensor]], tensors: Sequence[torch.Tensor], options: Any
    ) -> None:
        """This rank's tensors in everyone's place."""
        for targets in outputs:
            for place, target in enumerate(targets):
                host_alias(target).copy_(host_alias(tensors[place % len(tensors)]))

    def all_gather_flat(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> None:
        """This rank's tensor in everyone's part of one output."""
        whole = host_alias(output)
        whole.copy_(host_alias(tensor).reshape(-1).repeat(self.size).view(whole.shape))

    def gather(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor, options: Any) -> None:
        """This rank's tensor in everyone's place."""
        for target in outputs:
            host_alias(target).copy_(host_alias(tensor))

    def scatter(self, output: torch.Tensor, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """What the root has for itself."""
        if tensors:
            host_alias(output).copy_(host_alias(tensors[self.rank]))

    def reduce_scatter(self, output: torch.Tensor, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """A sum of equal parts."""
        target = host_alias(output)
        target.copy_(host_alias(tensors[self.rank]).view(target.shape))
        self._reduce(target, options)

    def reduce_scatter_flat(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> None:
        """The same with all parts in one tensor."""
        target = host_alias(output)
        target.copy_(host_alias(tensor).reshape(self.size, -1)[self.rank].view(target.shape))
        self._reduce(target, options)

    def all_to_all(
        self, outputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor], options: Any
    ) -> None:
        """From each rank what this one sends to it: where nothing tells more, both ways are alike."""
        for target, source in zip(outputs, tensors, strict=True):
            _fill(host_alias(target), host_alias(source))

    def all_to_all_flat(self, output: torch.Tensor, tensor: torch.Tensor, rows: Rows, options: Any) -> None:
        """The same with all parts in one tensor."""
        _fill(host_alias(output), host_alias(tensor))

    def _reduce(self, value: torch.Tensor, options: Any) -> None:
        if options.reduceOp == dist.ReduceOp.SUM:
            value.mul_(self.size)


def _fill(target: torch.Tensor, source: torch.Tensor) -> None:
    """As many elements as both have."""
    flat = source.reshape(-1)[: target.numel()]
    if target.is_contiguous():
        target.view(-1)[: flat.numel()].copy_(flat)


def values_of(
    store: dist.Store, rank: int, size: int, timeout: timedelta, present: Sequence[int]
) -> HostValues | StandInValues:
    """What moves the values of a group.

    Args:
        rank: Of this process in the group.
        present: Places of the ranks that run.
    """
    if len(present) == size:
        return HostValues(store, rank, size, timeout)
    return StandInValues(store, list(present).index(rank), len(present), size, rank, timeout)
