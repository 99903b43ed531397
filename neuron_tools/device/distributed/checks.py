"""What a collective asks of its tensors, checked where it is called, in the words that gloo uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist

from neuron_tools.device.distributed.errors import InvalidCallError

Tensors = Sequence[torch.Tensor]


def check_root(title: str, rank: int, size: int) -> None:
    """The rank that gives or gets all is one of the group.

    Raises:
        InvalidCallError: It is not.
    """
    if not 0 <= rank < size:
        raise InvalidCallError(f"{title}: invalid root rank {rank}: the group's ranks are 0 to {size - 1}.")


def check_root_tensor(title: str, place: int, tensors: Tensors) -> None:
    """The tensor that is sent is one of those given.

    Raises:
        InvalidCallError: It is not.
    """
    if not 0 <= place < len(tensors):
        raise InvalidCallError(f"{title}: invalid root tensor {place}: {len(tensors)} tensors are given.")


def check_alike(title: str, tensors: Tensors) -> None:
    """All have the first one's layout, dtype and shape.

    Raises:
        InvalidCallError: There is none, or one has others.
    """
    if not tensors:
        raise InvalidCallError(f"{title} requires non-empty tensor list.")
    for tensor in tensors[1:]:
        if tensor.layout != tensors[0].layout:
            raise InvalidCallError(
                f"{title}: invalid tensor layout {tensor.layout}, not {tensors[0].layout}."
            )
    check_like(title, tensors[0], tensors[1:])


def check_like(title: str, wanted: torch.Tensor, tensors: Iterable[torch.Tensor]) -> None:
    """All have the dtype and shape of one.

    Raises:
        InvalidCallError: One has others.
    """
    for tensor in tensors:
        if tensor.dtype != wanted.dtype:
            raise InvalidCallError(f"{title}: invalid tensor type {tensor.dtype}, not {wanted.dtype}.")
        if tensor.shape != wanted.shape:
            shapes = f"{list(tensor.shape)}, not {list(wanted.shape)}"
            raise InvalidCallError(f"{title}: invalid tensor size {shapes}.")


def check_reduction(title: str, tensors: Tensors, operation: dist.ReduceOp) -> None:
    """Sparse tensors can be added up only.

    Raises:
        InvalidCallError: They would be reduced in another way.
    """
    if tensors[0].is_sparse and operation != dist.ReduceOp.SUM:
        raise InvalidCallError(f"{title}: unsupported reduction operation of sparse tensors: only SUM is.")


def check_coalesced(title: str, tensors: Tensors) -> None:
    """Several dense tensors of one dtype.

    Raises:
        InvalidCallError: There is none, they are sparse, or their dtypes differ.
    """
    if not tensors:
        raise InvalidCallError(f"{title} requires non-empty tensor list.")
    for place, tensor in enumerate(tensors):
        if tensor.layout != tensors[0].layout:
            raise InvalidCallError(f"{title}: invalid tensor layout at index {place}: {tensor.layout}.")
        if tensor.dtype != tensors[0].dtype:
            dtypes = f"{tensor.dtype}, not {tensors[0].dtype}"
            raise InvalidCallError(f"{title}: tensors must all have the same type: {dtypes}.")
    if tensors[0].layout != torch.strided:
        raise InvalidCallError(f"{title}: unsupported layout {tensors[0].layout}: dense tensors only.")


def check_single(title: str, what: str, items: Sequence[object]) -> None:
    """One is given: a process uses one NeuronCore.

    Raises:
        InvalidCallError: None or several are.
    """
    if len(items) != 1:
        raise InvalidCallError(f"{title} requires a single-element {what}, not {len(items)} elements.")


def check_gathered(title: str, outputs: Sequence[Tensors], inputs: Tensors, size: int) -> None:
    """Room for each tensor of each rank.

    Raises:
        InvalidCallError: A list has another length, or a tensor another dtype or shape than the inputs.
    """
    if not inputs:
        raise InvalidCallError(f"{title} requires non-empty input tensor list.")
    if len(outputs) != len(inputs):
        raise InvalidCallError(f"{title} requires input/output tensor lists to have the same length.")
    for place, targets in enumerate(outputs):
        if len(targets) != len(inputs) * size:
            raise InvalidCallError(
                f"{title}: invalid output tensor list at index {place}: {len(targets)} tensors "
                f"for {size} ranks with {len(inputs)} each."
            )
    check_like(title, inputs[0], inputs)
    for targets in outputs:
        check_like(title, inputs[0], targets)


def check_gathered_lists(title: str, outputs: Sequence[Tensors], inputs: Tensors, size: int) -> None:
    """A list like the inputs for each rank.

    Raises:
        InvalidCallError: A list has another length, or a tensor another dtype or shape than its input.
    """
    if len(outputs) != size:
        raise InvalidCallError(
            f"{title}: output lists should be equal to world size: {len(outputs)} for {size} ranks."
        )
    for targets in outputs:
        if len(targets) != len(inputs):
            raise InvalidCallError(f"{title}: an output list has {len(targets)} tensors for {len(inputs)}.")
        for place, (target, tensor) in enumerate(zip(targets, inputs, strict=True)):
            if target.shape != tensor.shape:
                raise InvalidCallError(f"{title}: invalid size of output tensor at index {place}.")
            if target.dtype != tensor.dtype:
                raise InvalidCallError(f"{title}: invalid tensor type at index {place}: {target.dtype}.")


def check_at_root(
    title: str, side: str, lists: Sequence[Tensors], like: torch.Tensor, *, is_root: bool, size: int
) -> None:
    """The root has one tensor for each rank, the others have none.

    Args:
        side: "input" or "output", for the message.
        lists: That side's tensors.
        like: What each must be like.

    Raises:
        InvalidCallError: The root has fewer or more, another rank has some, or one is not like `like`.
    """
    if not is_root:
        if lists and lists[0]:
            raise InvalidCallError(f"{title} requires empty {side} on non-root.")
        return
    check_single(title, f"{side} list", lists)
    if len(lists[0]) != size:
        name = side.capitalize()
        raise InvalidCallError(
            f"{title}: Incorrect {side} list size {len(lists[0])}. {name} list size should be {size}, "
            "the group's."
        )
    check_like(title, like, lists[0])
