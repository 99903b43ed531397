"""GroupDelegate: c10d's operations, as the C++ back end hands them over, put as calls of a NeuronGroup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch

from neuron_tools.device import native
from neuron_tools.device.distributed import checks
from neuron_tools.device.distributed.call import Call, dtype_name
from neuron_tools.device.distributed.group import NeuronGroup
from neuron_tools.device.distributed.host_values import carry, skips_values
from neuron_tools.device.distributed.operation import GroupedOperation, Operation
from neuron_tools.device.distributed.point_to_point import Message, message_call
from neuron_tools.records.program import CollectiveKind

Tensors = Sequence[torch.Tensor]


class GroupDelegate:
    """One method for each of c10d's operations; each returns an Operation."""

    def __init__(self, group: NeuronGroup) -> None:
        self._group = group
        self._values = group.values
        self._together: list[Operation] | None = None

    def broadcast(self, tensors: Tensors, options: Any) -> Operation:
        """One rank's tensor to all."""
        checks.check_root("broadcast", options.rootRank, self._group.size)
        checks.check_root_tensor("broadcast", options.rootTensor, tensors)
        checks.check_alike("broadcast", tensors)
        run = partial(self._values.broadcast, tensors, options)
        kind = ("broadcast", "Broadcast", CollectiveKind.BROADCAST)
        agreed = f"{_counts(tensors)}|{options.rootRank}"
        return self._issue(kind, tensors, run, options, tensors[0], tensors, agreed=agreed)

    def allreduce(self, tensors: Tensors, options: Any) -> Operation:
        """Reduce, to all."""
        checks.check_alike("all_reduce", tensors)
        checks.check_reduction("all_reduce", tensors, options.reduceOp)
        return self._all_reduce("all_reduce", tensors, options)

    def allreduce_coalesced(self, tensors: Tensors, options: Any) -> Operation:
        """Several at once."""
        checks.check_coalesced("all_reduce_coalesced", tensors)
        return self._all_reduce("all_reduce_coalesced", tensors, options)

    def _all_reduce(self, title: str, tensors: Tensors, options: Any) -> Operation:
        together = self._values.all_reduce if title == "all_reduce" else self._values.all_reduce_each
        run = partial(together, tensors, options)
        kind = (title, "AllReduce", CollectiveKind.ALL_REDUCE)
        agreed = f"{_counts(tensors)}|{_reduction(options)}"
        return self._issue(kind, tensors, run, options, tensors, tensors, agreed=agreed)

    def reduce(self, tensors: Tensors, options: Any) -> Operation:
        """Reduce, to one rank."""
        checks.check_root("reduce", options.rootRank, self._group.size)
        checks.check_root_tensor("reduce", options.rootTensor, tensors)
        checks.check_single("reduce", "tensor list", tensors)
        (tensor,) = tensors
        run = partial(self._values.reduce, tensor, options)
        kind = ("reduce", "Reduce", CollectiveKind.REDUCE_SCATTER)
        agreed = f"{tensor.numel()}|{_reduction(options)}|{options.rootRank}"
        return self._issue(kind, [tensor], run, options, tensor, tensor, agreed=agreed)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, options: Any) -> Operation:
        """Every rank's tensor, to all."""
        checks.check_gathered("all_gather", outputs, inputs, self._group.size)
        run = partial(self._values.all_gather, outputs, inputs, options)
        kind = ("all_gather", "AllGather", CollectiveKind.ALL_GATHER)
        targets = [target for each in outputs for target in each]
        return self._issue(
            kind, targets, run, options, inputs, outputs[0], agreed=_counts(inputs), lists=len(outputs)
        )

    def allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> Operation:
        """The same into one tensor."""
        _check_whole("output", output, tensor, self._group.size)
        run = partial(self._values.all_gather_flat, output, tensor, options)
        kind = ("all_gather_into_tensor", "AllGather", CollectiveKind.ALL_GATHER)
        return self._issue(kind, [output], run, options, tensor, output, agreed=str(tensor.numel()))

    def allgather_coalesced(self, outputs: Sequence[Tensors], inputs: Tensors, options: Any) -> Operation:
        """Several tensors of every rank: one list of outputs for each rank."""
        checks.check_gathered_lists("all_gather_coalesced", outputs, inputs, self._group.size)
        by_tensor = list(zip(*outputs, strict=True))
        return self._together_of(
            [self.allgather([list(targets)], [tensor], options) for targets, tensor in zip(by_tensor, inputs)]
        )

    def allgather_into_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, options: Any) -> Operation:
        """Several at once."""
        pairs = zip(outputs, inputs, strict=True)
        return self._together_of([self.allgather_base(output, tensor, options) for output, tensor in pairs])

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, options: Any) -> Operation:
        """Every rank's tensor, to one."""
        tensor, targets = self._rooted("gather", "input", inputs, "output", outputs, options.rootRank)
        run = partial(self._values.gather, targets, tensor, options)
        kind = ("gather", "Gather", CollectiveKind.ALL_GATHER)
        agreed = f"{tensor.numel()}|{options.rootRank}"
        total = tensor.nbytes * self._group.size
        return self._issue(
            kind, targets or [tensor], run, options, tensor, targets, agreed=agreed, byte_count=total
        )

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], options: Any) -> Operation:
        """One rank's tensors, one to each."""
        tensor, sources = self._rooted("scatter", "output", outputs, "input", inputs, options.rootRank)
        run = partial(self._values.scatter, tensor, sources, options)
        kind = ("scatter", "Scatter", CollectiveKind.BROADCAST)
        agreed = f"{tensor.numel()}|{options.rootRank}"
        return self._issue(
            kind, [tensor], run, options, sources, tensor, agreed=agreed, byte_count=tensor.nbytes
        )

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], options: Any) -> Operation:
        """Reduce; part r to rank r."""
        (tensor,) = _one("reduce_scatter", outputs)
        (sources,) = _one("reduce_scatter", inputs)
        run = partial(self._values.reduce_scatter, tensor, sources, options)
        kind = ("reduce_scatter", "ReduceScatter", CollectiveKind.REDUCE_SCATTER)
        agreed = f"{_counts(sources)}|{_reduction(options)}"
        return self._issue(kind, [tensor], run, options, sources, tensor, agreed=agreed)

    def reduce_scatter_base(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> Operation:
        """The same from one tensor."""
        _check_whole("input", tensor, output, self._group.size)
        run = partial(self._values.reduce_scatter_flat, output, tensor, options)
        kind = ("reduce_scatter_tensor", "ReduceScatter", CollectiveKind.REDUCE_SCATTER)
        agreed = f"{tensor.numel()}|{_reduction(options)}"
        return self._issue(kind, [output], run, options, tensor, output, agreed=agreed)

    def reduce_scatter_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, options: Any) -> Operation:
        """Several at once."""
        pairs = zip(outputs, inputs, strict=True)
        return self._together_of(
            [self.reduce_scatter_base(output, tensor, options) for output, tensor in pairs]
        )

    def alltoall_base(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_sizes: Sequence[int],
        input_sizes: Sequence[int],
        options: Any,
    ) -> Operation:
        """Rows of one tensor, to the ranks.

        Raises:
            ValueError: A tensor is not contiguous.
        """
        if not (output.is_contiguous() and tensor.is_contiguous()):
            raise ValueError("Tensors must be contiguous: all_to_all_single counts their rows.")
        run = partial(self._values.all_to_all_flat, output, tensor, (output_sizes, input_sizes), options)
        kind = ("all_to_all_single", "AllToAll", CollectiveKind.ALL_TO_ALL)
        return self._issue(kind, [output], run, options, tensor, output)

    def alltoall(self, outputs: Tensors, inputs: Tensors, options: Any) -> Operation:
        """Tensor r to rank r."""
        run = partial(self._values.all_to_all, list(outputs), list(inputs), options)
        kind = ("all_to_all", "AllToAll", CollectiveKind.ALL_TO_ALL)
        return self._issue(kind, list(outputs), run, options, inputs, outputs)

    def barrier(self, options: Any) -> Operation:
        """All ranks come here."""
        call = Call(
            title="barrier",
            operation="Barrier",
            kind=CollectiveKind.BARRIER,
            outputs=[],
            values=_nothing,
            device=int(native.core().current_device()),
            timeout=_timeout(options),
            blocks_host=True,
            asynchronous=bool(getattr(options, "asyncOp", True)),
        )
        return self._add(self._group.issue(call))

    def monitored_barrier(self, options: Any, wait_all_ranks: bool) -> None:
        """A barrier that tells which rank did not come; gloo's own."""
        if self._values.gloo is not None:
            self._values.gloo.monitored_barrier(_timeout(options) or self._group.timeout, wait_all_ranks)

    def send(self, tensors: Tensors, peer: int, tag: int) -> Operation:
        """To one rank."""
        (tensor,) = _one("send", tensors)
        return self._message("send", "Send", tensor, peer, tag, is_send=True)

    def recv(self, tensors: Tensors, peer: int, tag: int) -> Operation:
        """From one rank."""
        (tensor,) = _one("recv", tensors)
        return self._message("recv", "Receive", tensor, peer, tag, is_send=False)

    def recv_anysource(self, tensors: Tensors, tag: int) -> Operation:
        """From whichever rank sends first."""
        (tensor,) = _one("recv", tensors)
        return self._message("recv", "Receive", tensor, None, tag, is_send=False)

    def _message(
        self, title: str, operation: str, tensor: torch.Tensor, peer: int | None, tag: int, *, is_send: bool
    ) -> Operation:
        call = message_call(title, operation, tensor, _device([tensor]), _nothing)
        carrier = None if skips_values([tensor]) else carry(tensor)
        return self._add(Message(self._group, call, peer, tag, is_send, carrier))

    def start_coalescing(self) -> None:
        """Collect what is issued from now on."""
        self._together = []

    def end_coalescing(self) -> Operation:
        """What was collected, as one operation."""
        operations, self._together = self._together or [], None
        return self._together_of(operations)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long ranks wait for each other from now on."""
        self._group.timeout = timeout
        if self._values.gloo is not None:
            self._values.gloo._set_default_timeout(timeout)

    def sequence_number(self) -> int:
        """Collectives that this rank has issued."""
        return self._group.sequence

    def shutdown(self) -> None:
        """The group is not used any more."""
        self._group.close()

    def _rooted(
        self, title: str, side: str, own: Tensors, other_side: str, lists: Sequence[Tensors], root: int
    ) -> tuple[torch.Tensor, Tensors]:
        """This rank's tensor, and those of all ranks at the root; none elsewhere."""
        size = self._group.size
        checks.check_root(title, root, size)
        checks.check_single(title, f"{side} tensor list", own)
        (tensor,) = own
        checks.check_at_root(title, other_side, lists, tensor, is_root=root == self._group.rank, size=size)
        return tensor, list(lists[0]) if lists else []

    def _issue(
        self,
        kind: tuple[str, str, CollectiveKind],
        outputs: Tensors,
        run: Callable[[], None],
        options: Any,
        brought: torch.Tensor | Tensors,
        got: torch.Tensor | Tensors,
        *,
        agreed: str = "",
        byte_count: int = 0,
        lists: int = 1,
    ) -> Operation:
        inputs, results = _listed(brought), _listed(got)
        if skips_values([*outputs, *inputs]):
            run = _nothing
        largest = max((inputs, results), key=_bytes)
        call = Call(
            title=kind[0],
            operation=kind[1],
            kind=kind[2],
            outputs=list(outputs),
            values=run,
            device=_device([*outputs, *inputs]),
            elements=sum(tensor.numel() for tensor in largest),
            dtype=dtype_name(largest[0].dtype) if largest else "",
            input_bytes=_bytes(inputs),
            output_bytes=max(_bytes(results), byte_count),
            agreed=agreed,
            timeout=_timeout(options),
            asynchronous=bool(getattr(options, "asyncOp", True)),
            lists=lists,
            detail=_detail(kind[0], options, self._group.ranks),
        )
        return self._add(self._group.issue(call))

    def _add(self, operation: Operation) -> Operation:
        if self._together is not None:
            self._together.append(operation)
        return operation

    def _together_of(self, operations: Sequence[Operation]) -> Operation:
        """One operation that ends with the last of several."""
        outputs = [tensor for operation in operations for tensor in operation.call.outputs]
        call = Call("coalesced", "", CollectiveKind.BARRIER, outputs, _nothing, _device(outputs))
        return GroupedOperation(call, operations)


def _nothing() -> None:
    """No values move."""


def _one(title: str, items: Sequence[Any]) -> Sequence[Any]:
    if len(items) != 1:
        raise ValueError(f"{title} takes one tensor a rank, not {len(items)}: a process uses one NeuronCore.")
    return items


def _listed(tensors: torch.Tensor | Tensors) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _bytes(tensors: Tensors) -> int:
    return sum((tensor._values() if tensor.is_sparse else tensor).nbytes for tensor in tensors)


def _counts(tensors: Tensors) -> str:
    return ",".join(str(tensor.numel()) for tensor in tensors)


def _device(tensors: Tensors) -> int | None:
    """The NeuronCore that tensors are on; None for the host."""
    return next((tensor.device.index or 0 for tensor in tensors if tensor.device.type == "neuron"), None)


def _reduction(options: Any) -> str:
    return str(options.reduceOp.op)


def _detail(title: str, options: Any, ranks: Sequence[int]) -> str:
    """In a message: which reduction if not a sum, and from or to which rank of the job."""
    reduction = _reduction(options).rpartition(".")[2] if hasattr(options, "reduceOp") else "SUM"
    text = "" if reduction == "SUM" else f" with {reduction}"
    way = {"broadcast": "from", "scatter": "from", "reduce": "to", "gather": "to"}.get(title)
    return text if way is None else f"{text} {way} rank {ranks[options.rootRank]}"


def _timeout(options: Any) -> timedelta | None:
    timeout: timedelta | None = getattr(options, "timeout", None)
    return timeout if timeout is not None and timeout.total_seconds() > 0 else None


def _check_whole(what: str, whole: torch.Tensor, part: torch.Tensor, size: int) -> None:
    if whole.numel() != part.numel() * size:
        other = "input" if what == "output" else "output"
        raise ValueError(f"{what} tensor size must be equal to world_size times {other} tensor size")
    if whole.dtype != part.dtype:
        raise TypeError("output tensor must have the same type as input tensor")
