"""Operators that run as one execution become one module, in which memory between them is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from neuron_tools.frontends.torch_eager.fused import (
    NotFusable,
    WaitingOperation,
    lower_fused,
    result_of,
)
from tests.unit.frontends.signatures import describe, describe_call

aten = torch.ops.aten


class Waiting(TorchDispatchMode):
    """Collects the operators of a program as the device would tell them, with the memory of their tensors."""

    def __init__(self, needed: Callable[[torch.Tensor], bool] = lambda tensor: True) -> None:
        super().__init__()
        self.operations: list[WaitingOperation] = []
        self._needed = needed
        self._kept: list[torch.Tensor] = []
        self._buffers: dict[int, int] = {}

    def __torch_dispatch__(self, target, types, args=(), kwargs=None):
        entries = describe_call(target, args, kwargs or {})
        uses = tuple(self._place(leaf) for leaf in pytree.tree_leaves((args, kwargs)) if _is_tensor(leaf))
        result = target(*args, **(kwargs or {}))
        if not target.is_view:
            made = tuple(self._result(leaf) for leaf in pytree.tree_leaves(result) if _is_tensor(leaf))
            self.operations.append(WaitingOperation(target.name(), entries, uses, made))
        return result

    def _place(self, tensor: torch.Tensor) -> tuple[int, int]:
        self._kept.append(tensor)  # a storage's address must not be used again
        key = tensor.untyped_storage()._cdata
        return self._buffers.setdefault(key, len(self._buffers)), tensor.storage_offset()

    def _result(self, tensor: torch.Tensor) -> Any:
        buffer, offset = self._place(tensor)
        dtype = describe(tensor)[1]
        needed = self._needed(tensor)
        return result_of(buffer, offset, dtype, list(tensor.shape), list(tensor.stride()), needed)


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor)


def fused(program: Callable[..., Any], *inputs: torch.Tensor, needed: Any = lambda tensor: True) -> Any:
    """The module of all that a program calls."""
    with Waiting(needed) as waiting:
        program(*inputs)
    return lower_fused(waiting.operations, "fused"), waiting.operations


def shapes(module: Any, ids: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [module.values[number].type.shape for number in ids]


def test_what_lies_between_operators_is_no_parameter_and_no_result() -> None:
    module, _operations = fused(
        lambda x, y: torch.relu((x + y) * 2),
        torch.ones(4, 6),
        torch.ones(6),
        needed=lambda t: bool(t.min() > 3),
    )
    assert shapes(module, module.parameters) == [(4, 6), (6,)]
    assert [operation.name for operation in module.framework] == ["aten::add", "aten::mul", "aten::relu"]
    module, _ = fused(lambda x: (x + 1).neg().abs(), torch.ones(4, 6), needed=lambda t: t.shape == (1,))
    assert shapes(module, module.results) == [(4, 6)]  # of all that nobody needs the last one


def test_what_is_needed_is_a_result() -> None:
    module, _ = fused(lambda x: (x + 1).neg().abs(), torch.ones(4, 6))
    assert shapes(module, module.results) == [(4, 6)] * 3


def test_an_operator_that_writes_gives_later_ones_the_new_value() -> None:
    def program(x: torch.Tensor) -> None:
        x.add_(1)
        x.mul_(x)
        torch.sum(x)

    module, _ = fused(program, torch.ones(4, 6))
    assert len(module.parameters) == 1
    assert shapes(module, module.results) == [(4, 6), ()]


def test_one_tensor_that_is_read_twice_is_one_parameter() -> None:
    module, _ = fused(lambda x: (x + 1, x * 2, x.t() + 3), torch.ones(4, 6))
    assert shapes(module, module.parameters) == [(4, 6)]
    module, _ = fused(lambda x: (x + 1, x[:2] * 2), torch.ones(4, 6))
    assert shapes(module, module.parameters) == [(4, 6), (2, 6)]


PROGRAMS = {
    "attention heads": lambda x: torch.softmax(
        (x @ torch.ones(12, 36)).view(4, 8, 3, 2, 6).permute(2, 0, 3, 1, 4)[0] + 1, -1
    ),
    "chunks": lambda x: torch.mul(*(x * 2).chunk(2, dim=-1)),
    "split and cat": lambda x: torch.cat((x + 1).split(3, dim=-1), 0),
    "layer norm": lambda x: torch.layer_norm(x + 1, (12,)) * 2,
    "multi tensor": lambda x: torch._foreach_add(torch._foreach_mul([x, x + 1], 2.0), 1.0),
    "indices": lambda x: (x + 1)[:, torch.tensor([0, 2])] * 2,
    "batch norm": lambda x: torch.relu(torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)),
    "channels last": lambda x: (
        torch.relu(
            torch.conv2d(x.view(1, 4, 8, 12), torch.ones(2, 4, 3, 3)).contiguous(
                memory_format=torch.channels_last
            )
        )
        + 1
    ),
    "promotion": lambda x: (x.to(torch.bfloat16) * 2).float() + x.sum(),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_lower_as_a_whole(program: str) -> None:
    module, operations = fused(PROGRAMS[program], torch.rand(4, 8, 12))
    assert len(module.framework) == len(operations) > 1
    assert module.results
    assert not module.warnings
    used = {row for operation in module.operations for row in operation.framework}
    assert used <= set(range(len(operations)))


@pytest.mark.parametrize(("all_needed", "copies"), [(True, 1), (False, 0)])
def test_a_value_in_two_places_is_copied_where_both_are_needed(all_needed: bool, copies: int) -> None:
    x, y = torch.ones(3), torch.zeros(3)
    module, _ = fused(
        lambda x, y: y.copy_(x + 1), x, y, needed=lambda t: all_needed or t.data_ptr() == y.data_ptr()
    )
    assert [operation.opcode for operation in module.operations].count("copy") == copies
    assert len(module.results) == len(set(module.results)) == copies + 1


def test_the_value_of_a_buffer_that_was_read_takes_over_its_memory() -> None:
    module, _ = fused(lambda x, y: x.add_(y).mul_(2), torch.ones(4), torch.ones(4))
    assert module.aliases == ((0, 0),)


def test_memory_that_was_written_in_part_cannot_be_read_as_a_whole() -> None:
    def program(x: torch.Tensor) -> None:
        x[1].mul_(3)
        torch.relu(x)

    with pytest.raises(NotFusable) as refusal:
        fused(program, torch.ones(4, 6))
    assert refusal.value.position == 1


def test_a_part_of_what_was_made_cannot_be_written() -> None:
    with pytest.raises(NotFusable) as refusal:
        fused(lambda x: (x + 1)[1].mul_(3), torch.ones(4, 6))
    assert refusal.value.position == 1
