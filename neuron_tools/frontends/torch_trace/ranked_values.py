"""Values of collectives among ranks that one process computes at once, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from itertools import chain
from typing import Any, TypeVar

import torch

from neuron_tools.frontends.torch_lowering.meshes import Groups
from neuron_tools.frontends.torch_trace.errors import TraceError

Result = TypeVar("Result")
Form = Callable[[Sequence[torch.Tensor], int, Sequence[Any]], torch.Tensor]
_REDUCTIONS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add, "avg": torch.add, "product": torch.mul, "min": torch.minimum, "max": torch.maximum,
}  # fmt: skip


class _Meeting:
    """Where the ranks of one call bring their tensors."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._barrier = threading.Barrier(ranks)
        self._brought: list[torch.Tensor | None] = [None] * ranks

    @contextmanager
    def brought(self, rank: int, tensor: torch.Tensor) -> Iterator[Sequence[Any]]:
        """All ranks' tensors; nobody goes on before all have left the block."""
        self._brought[rank] = tensor
        self._barrier.wait()
        yield self._brought
        self._barrier.wait()

    def abandon(self) -> None:
        """Let nobody wait any more: a rank does not come."""
        self._barrier.abort()


_here: ContextVar[tuple[int, _Meeting] | None] = ContextVar("rank_and_meeting", default=None)


def for_each_rank(compute: Callable[[int], Result], ranks: int) -> list[Result]:
    """Compute something for each rank at once; collectives in it meet.

    Args:
        compute: Called with each rank, from 0.
        ranks: How many.

    Raises:
        Exception: What the first of the ranks raised that failed by itself.
    """
    meeting = _Meeting(ranks)

    def run(rank: int) -> Result:
        _here.set((rank, meeting))
        try:
            return compute(rank)
        except BaseException:
            meeting.abandon()
            raise

    with ThreadPoolExecutor(ranks) as threads:
        futures = [threads.submit(run, rank) for rank in range(ranks)]
        failures = [future.exception() for future in futures]
    for failure in sorted(filter(None, failures), key=_is_abandoned):
        raise failure
    return [future.result() for future in futures]


def _is_abandoned(failure: BaseException) -> bool:
    """Whether a rank failed because another one did; TorchScript gives the error's name in its own."""
    return threading.BrokenBarrierError.__name__ in f"{type(failure).__name__} {failure}"


def collective(name: str, arguments: Sequence[Any], groups: Groups) -> torch.Tensor:
    """A collective's result for the rank that the calling thread computes.

    Outside `for_each_rank`, where only shapes matter, all ranks bring what this one brings.

    Args:
        name: Of PyTorch's functional collective.
        arguments: Its arguments; the first is what the rank brings.
        groups: Ranks that are together.

    Returns:
        The result.

    Raises:
        TraceError: The groups are not of the ranks that compute.
    """
    here, form = _here.get(), _FORMS[name]
    if here is None:
        return form([arguments[0]] * len(groups[0]), 0, arguments)
    rank, meeting = here
    if sorted(chain(*groups)) != [*range(meeting.ranks)]:
        raise TraceError(
            f"The model was traced for {sum(map(len, groups))} ranks and is called by {meeting.ranks}: let "
            "world_size be the tensor parallel degree that it was traced with."
        )
    own = next(group for group in groups if rank in group)
    with meeting.brought(rank, arguments[0]) as tensors:
        return form([tensors[other] for other in own], own.index(rank), arguments)


def _reduced(tensors: Sequence[torch.Tensor], reduction: str) -> torch.Tensor:
    total = reduce(_REDUCTIONS[reduction], tensors[1:], tensors[0].clone())
    return total / len(tensors) if reduction == "avg" else total


def _all_reduce(tensors: Sequence[torch.Tensor], place: int, arguments: Sequence[Any]) -> torch.Tensor:
    return _reduced(tensors, arguments[1])


def _all_gather(tensors: Sequence[torch.Tensor], place: int, arguments: Sequence[Any]) -> torch.Tensor:
    return torch.cat([*tensors])


def _reduce_scatter(tensors: Sequence[torch.Tensor], place: int, arguments: Sequence[Any]) -> torch.Tensor:
    return _reduced(tensors, arguments[1]).chunk(len(tensors))[place].clone()


def _all_to_all(tensors: Sequence[torch.Tensor], place: int, arguments: Sequence[Any]) -> torch.Tensor:
    return torch.cat([tensor.split(list(arguments[2]))[place] for tensor in tensors])


def _broadcast(tensors: Sequence[torch.Tensor], place: int, arguments: Sequence[Any]) -> torch.Tensor:
    return tensors[arguments[1]].clone()


_FORMS: Mapping[str, Form] = {
    "all_reduce": _all_reduce,
    "all_gather_into_tensor": _all_gather,
    "reduce_scatter_tensor": _reduce_scatter,
    "all_to_all_single": _all_to_all,
    "broadcast": _broadcast,
}
