"""Values of collectives: gloo on the host memory beneath neuron tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from neuron_tools.device import native
from neuron_tools.device.distributed.errors import UnequalSplitsError
from neuron_tools.device.distributed.extension import extension
from neuron_tools.frozen import frozen

Rows = tuple[Sequence[int], Sequence[int]]
"""Rows of a tensor received from each rank, and sent to each; an empty sequence stands for equal parts."""
# Types whose bytes gloo moves but cannot add up, and what to add them up in.
_WIDER = {torch.int16: torch.int32, torch.bool: torch.uint8}
_MOVED_AS_THEY_ARE = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32,
    torch.int64,
)  # fmt: skip


def host_alias(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the memory of a neuron tensor; the tensor itself where it is on the host."""
    alias: torch.Tensor = extension().host_alias(tensor.detach())
    return alias


def skips_values(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether the values of these tensors are left out (`csrc/skipped_values.h`): none of them moves then."""
    core = native.core()
    return bool(core.values_are_skipped()) and any(bool(core.skips_values_of(each)) for each in tensors)


@frozen
class Carrier:
    """A contiguous host tensor that gloo works on, and how it gets back to the tensor it stands for."""

    tensor: torch.Tensor
    target: torch.Tensor

    def deliver(self) -> None:
        """Write the values back; nothing where they are in place."""
        if self.tensor.data_ptr() != self.target.data_ptr() or self.tensor.dtype != self.target.dtype:
            self.target.copy_(self.tensor.view(self.target.shape) if self._is_cast else self._as_target())

    @property
    def _is_cast(self) -> bool:
        return self.tensor.dtype == self.target.dtype or self.target.dtype in _WIDER

    def _as_target(self) -> torch.Tensor:
        return self.tensor.view(self.target.dtype).view(self.target.shape)


def carry(tensor: torch.Tensor) -> Carrier:
    """For moving bytes: contiguous, in a type that gloo knows."""
    alias = host_alias(tensor)
    whole = alias.contiguous()
    if whole.dtype not in _MOVED_AS_THEY_ARE:
        whole = whole.view(-1).view(torch.uint8) if whole.dim() else whole.view(1).view(torch.uint8)
    return Carrier(whole, alias)


def carry_to_reduce(tensor: torch.Tensor) -> Carrier:
    """For adding up: contiguous, in a type that gloo adds up."""
    alias = host_alias(tensor)
    wider = _WIDER.get(alias.dtype)
    whole = alias.contiguous() if wider is None else alias.to(wider).contiguous()
    return Carrier(whole, alias)


class HostValues:
    """A gloo group, and collectives over neuron or host tensors that return when the values are there."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
        self.rank, self.size = rank, size

    def broadcast(self, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """Values of tensor `options.rootTensor` of rank `options.rootRank`, to all tensors of all."""
        carriers = [carry(tensor) for tensor in tensors]
        self.gloo.broadcast([each.tensor for each in carriers], options).wait()
        _deliver(carriers)

    def all_reduce_each(self, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """Each tensor added up (or whatever the reduction is) over the ranks, in place, all in one go.

        Args:
            tensors: Of one dtype; one may stand there twice.
        """
        if len(tensors) == 1:
            self.all_reduce(tensors, options)
            return
        carriers = [carry_to_reduce(tensor) for tensor in tensors]
        joined = _joined([each.tensor for each in carriers])
        self.all_reduce([joined], options)
        parts = joined.split(_sizes([each.tensor for each in carriers]))
        for carrier, part in zip(carriers, parts, strict=True):
            carrier.tensor.copy_(part.view(carrier.tensor.shape))
            carrier.deliver()

    def all_reduce(self, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """The tensors of all ranks added up into one value, which all of them get."""
        if tensors[0].is_sparse:
            self.gloo.allreduce(list(tensors), options).wait()
            return
        reduction, carriers = _Reduction(options), [carry_to_reduce(tensor) for tensor in tensors]
        for carrier in carriers:
            reduction.before(carrier.tensor)
        chosen = reduction.options(c10d.AllreduceOptions)
        self.gloo.allreduce([each.tensor for each in carriers], chosen).wait()
        for carrier in carriers:
            reduction.after(carrier.tensor, self.size * len(tensors))
            carrier.deliver()

    def reduce(self, tensor: torch.Tensor, options: Any) -> None:
        """The same, for rank `options.rootRank` alone."""
        reduction, carrier = _Reduction(options), carry_to_reduce(tensor)
        work = carrier.tensor if options.rootRank == self.rank else carrier.tensor.clone()
        reduction.before(work)
        chosen = reduction.options(c10d.ReduceOptions)
        chosen.rootRank, chosen.rootTensor = options.rootRank, options.rootTensor
        self.gloo.reduce([work], chosen).wait()
        if options.rootRank == self.rank:
            reduction.after(work, self.size)
            carrier.deliver()

    def all_gather(
        self, outputs: Sequence[Sequence[torch.Tensor]], tensors: Sequence[torch.Tensor], options: Any
    ) -> None:
        """The ranks' tensors, in order, into each list of outputs."""
        carriers = [[carry(output) for output in targets] for targets in outputs]
        targets = [[each.tensor for each in some] for some in carriers]
        self.gloo.allgather(targets, [carry(tensor).tensor for tensor in tensors], options).wait()
        for some in carriers:
            _deliver(some)

    def all_gather_flat(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> None:
        """Each rank's tensor into its part of one output."""
        carrier, source = carry(output), carry(tensor).tensor
        parts = carrier.tensor.view(-1).chunk(self.size) if carrier.tensor.numel() else []
        if parts:
            self.gloo.allgather([list(parts)], [source.view(-1)], options).wait()
        carrier.deliver()

    def gather(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor, options: Any) -> None:
        """Each rank's tensor to rank `options.rootRank`, which alone has outputs."""
        carriers = [carry(output) for output in outputs]
        targets = [[each.tensor for each in carriers]] if carriers else []
        self.gloo.gather(targets, [carry(tensor).tensor], options).wait()
        _deliver(carriers)

    def scatter(self, output: torch.Tensor, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """Rank `options.rootRank`'s tensors, one to each rank."""
        carrier = carry(output)
        sources = [[carry(each).tensor for each in tensors]] if tensors else []
        self.gloo.scatter([carrier.tensor], sources, options).wait()
        carrier.deliver()

    def reduce_scatter(self, output: torch.Tensor, tensors: Sequence[torch.Tensor], options: Any) -> None:
        """The sum over the ranks of tensor r, to rank r."""
        carriers = [carry_to_reduce(each).tensor for each in tensors]
        whole = torch.cat([each.reshape(-1) for each in carriers])
        mine = sum(each.numel() for each in carriers[: self.rank])
        self._reduce_scatter(output, whole, slice(mine, mine + output.numel()), options)

    def reduce_scatter_flat(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> None:
        """The same with all parts in one tensor."""
        whole = carry_to_reduce(tensor).tensor.clone().view(-1)
        part = whole.numel() // self.size
        self._reduce_scatter(output, whole, slice(self.rank * part, (self.rank + 1) * part), options)

    def _reduce_scatter(self, output: torch.Tensor, whole: torch.Tensor, mine: slice, options: Any) -> None:
        reduction = _Reduction(options)
        reduction.before(whole)
        self.gloo.allreduce([whole], reduction.options(c10d.AllreduceOptions)).wait()
        part = whole[mine]
        reduction.after(part, self.size)
        alias = host_alias(output)
        alias.copy_(part.view(alias.shape))

    def all_to_all(
        self, outputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor], options: Any
    ) -> None:
        """Tensor r to rank r."""
        sources = [host_alias(each) for each in tensors]
        whole = _joined(sources)
        targets = [host_alias(each) for each in outputs]
        received = torch.empty(sum(each.numel() for each in targets), dtype=whole.dtype, device="cpu")
        self._exchange(received, whole, _sizes(targets), _sizes(sources), options)
        for target, part in zip(targets, received.split(_sizes(targets)), strict=True):
            target.copy_(part.view(target.shape))

    def all_to_all_flat(self, output: torch.Tensor, tensor: torch.Tensor, rows: Rows, options: Any) -> None:
        """Rows of one tensor to the ranks; equal parts where `rows` does not tell how many."""
        target, source = host_alias(output), host_alias(tensor).contiguous()
        received = target.contiguous()
        counts = [
            [count * _row(each) for count in told] or [each.numel() // self.size] * self.size
            for each, told in zip((received, source), rows, strict=True)
        ]
        self._exchange(received.view(-1), source.view(-1), counts[0], counts[1], options)
        if received.data_ptr() != target.data_ptr():
            target.copy_(received)

    def _exchange(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_counts: list[int],
        input_counts: list[int],
        options: Any,
    ) -> None:
        """Elements of two flat tensors; as bytes where gloo does not know their type.

        Raises:
            UnequalSplitsError: One rank sends what another does not take: gloo would wait for ever.
        """
        self._compare_splits(output_counts, input_counts)
        scale = 1
        if tensor.dtype not in _MOVED_AS_THEY_ARE:
            scale, output, tensor = tensor.element_size(), output.view(torch.uint8), tensor.view(torch.uint8)
        outputs, inputs = ([count * scale for count in counts] for counts in (output_counts, input_counts))
        self.gloo.alltoall_base(output, tensor, outputs, inputs, options).wait()

    def _compare_splits(self, taken: list[int], sent: list[int]) -> None:
        own = torch.tensor([taken, sent], dtype=torch.int64, device="cpu")
        every = [torch.zeros_like(own) for _ in range(self.size)]
        self.gloo.allgather([every], [own], c10d.AllgatherOptions()).wait()
        matrix = torch.stack(every)
        differs = (matrix[:, 1] != matrix[:, 0].T).nonzero().tolist()
        if differs:
            sender, receiver = differs[0]
            counts = int(matrix[sender, 1, receiver]), int(matrix[receiver, 0, sender])
            raise UnequalSplitsError(sender, receiver, *counts)


class _Reduction:
    """One reduction, in terms of those that gloo has."""

    def __init__(self, options: Any) -> None:
        self._wanted = options.reduceOp
        self._timeout = options.timeout
        self._factor = extension().premultiplier(options.reduceOp)

    def options(self, make: Callable[[], Any]) -> Any:
        """Gloo's options."""
        chosen = make()
        plain = self._factor is not None or self._wanted == dist.ReduceOp.AVG
        chosen.reduceOp = dist.ReduceOp.SUM if plain else self._wanted
        chosen.timeout = self._timeout
        return chosen

    def before(self, tensor: torch.Tensor) -> None:
        """Scale this rank's part."""
        if self._factor is not None:
            factor = self._factor
            tensor.mul_(host_alias(factor) if isinstance(factor, torch.Tensor) else factor)

    def after(self, tensor: torch.Tensor, size: int) -> None:
        """Make a mean of a sum."""
        if self._wanted == dist.ReduceOp.AVG:
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.div_(size)
            else:
                tensor.div_(size, rounding_mode="trunc")


def _deliver(carriers: Sequence[Carrier]) -> None:
    for carrier in carriers:
        carrier.deliver()


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([each.reshape(-1) for each in tensors])


def _sizes(tensors: Sequence[torch.Tensor]) -> list[int]:
    return [each.numel() for each in tensors]


def _row(tensor: torch.Tensor) -> int:
    """Elements of one row."""
    return tensor.numel() // tensor.shape[0] if tensor.dim() and tensor.shape[0] else 1
