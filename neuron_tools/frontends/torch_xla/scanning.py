"""`scan` on the device `xla`: a function that is called for each row becomes one loop of the program.

The function is recorded once, with its gradients, on the first row. What the backward pass needs of each
trip is kept in rows, but for views, which it makes again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.recurrence import recur
from neuron_tools.frontends.torch_xla.body import Body, BodyStep, used_by
from neuron_tools.frontends.torch_xla.carrying import LoopFunction, beginning, writable
from neuron_tools.frontends.torch_xla.execution import current_graph, recorded_into
from neuron_tools.frontends.torch_xla.graph import RecordedOperation
from neuron_tools.frontends.torch_xla.nest import Nest, emptied
from neuron_tools.frontends.torch_xla.tensor import XlaTensor
from neuron_tools.frozen import frozen

Function = Callable[[Any, Any], tuple[Any, Any]]
_SCAN = LoopFunction("scan")
Tensors = Sequence[torch.Tensor]


def scan(function: Function, init: Any, xs: Any) -> tuple[Any, Any]:
    """Call a function for each row of some tensors, each time with what the call before left.

    Args:
        function: Of what is carried and a row of `xs`; returns what is carried on, and a row of results.
        init: What the first call begins with: tensors in any nest.
        xs: Tensors in any nest, whose first axis counts the rows.

    Returns:
        What the last call left, and the results of all calls, a row each.

    Raises:
        ValueError: There are no rows, tensors have different numbers of them, what is carried changes its
            nest, shape or type, or the function writes in place to another tensor.
        XlaError: Tensors are on different devices, or the function looks at a value.
    """
    start, carried = emptied(init)
    nest, tables = emptied(xs)
    _check_rows(tables)
    if isinstance(current_graph(), Body) or not any(isinstance(each, XlaTensor) for each in tables):
        return _one_by_one(function, init, nest, tables)
    _SCAN.check_devices([*carried, *tables])
    loop, made = _recorded(function, start, carried, nest, tables)
    tensors = [*carried, *tables, *loop.fixed]
    results = loop.run(tensors) if loop.backward is None else _Scan.apply(loop, *tensors)
    return start.filled(results[: len(carried)]), made.filled(results[len(carried) :])


def _one_by_one(function: Function, carried: Any, nest: Nest, tables: Tensors) -> tuple[Any, Any]:
    """Without a loop of the program: one call after the other, each on its own copies."""
    rows = []
    for at in range(len(tables[0])):
        start, before = emptied(carried)
        row = nest.filled([table[at].clone() for table in tables])
        carried, made = function(start.filled([each.clone() for each in before]), row)
        of_row, tensors = emptied(made)
        rows.append(tensors)
    return carried, of_row.filled([torch.stack(each) for each in zip(*rows)])


@frozen
class _Backward:
    """The gradients' loop, which begins with the last row.

    Attributes:
        step: What is done with each row.
        carried: Which of what the function carries have gradients.
        made: Which of its results have.
        rows: Which of its tables have.
        fixed: Which of the tensors from outside have.
        saved: How many rows the forward loop keeps.
        tables: Which of its tables the step reads.
        reads: Which tensors from outside.
    """

    step: str
    carried: tuple[int, ...]
    made: tuple[int, ...]
    rows: tuple[int, ...]
    fixed: tuple[int, ...]
    saved: int
    tables: tuple[int, ...]
    reads: tuple[int, ...]


@frozen
class _Loop:
    """A recorded function as loops.

    Attributes:
        step: What is done with each row.
        carried: How many tensors go round.
        tables: How many have a row for each trip.
        fixed: Tensors from outside that the function reads.
        backward: The gradients' loop; None without one.
    """

    step: str
    carried: int
    tables: int
    fixed: tuple[torch.Tensor, ...]
    backward: _Backward | None

    def run(self, tensors: Tensors) -> list[Any]:
        """What was carried to the end, all results, and what is kept for gradients."""
        carried, tables, fixed = self.parted(tensors)
        last, made = recur(self.step, carried, tables, fixed)
        return [*last, *made]

    def parted(self, tensors: Tensors) -> tuple[Tensors, Tensors, Tensors]:
        """What is carried, the tables and what stays, of what `run` takes."""
        behind = self.carried + self.tables
        return tensors[: self.carried], tensors[self.carried : behind], tensors[behind:]


class _Scan(torch.autograd.Function):
    """A loop with gradients."""

    @staticmethod
    def forward(ctx: Any, loop: _Loop, *tensors: torch.Tensor) -> Any:
        """What was carried to the end, and all results."""
        assert loop.backward is not None
        results = loop.run(tensors)
        count = len(results) - loop.backward.saved
        ctx.loop = loop
        ctx.save_for_backward(*tensors, *results[count:])
        given = (*loop.backward.carried, *(loop.carried + at for at in loop.backward.made))
        ctx.mark_non_differentiable(*(results[at] for at in range(count) if at not in given))
        return tuple(results[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Gradients of what was carried, of the tables and of what stayed."""
        loop: _Loop = ctx.loop
        backward = loop.backward
        assert backward is not None
        saved = ctx.saved_tensors
        count = len(saved) - backward.saved
        _, tables, fixed = loop.parted(saved[:count])
        carried = [gradients[at] for at in backward.carried]
        carried += [torch.zeros_like(fixed[at]) for at in backward.fixed]
        rows = [gradients[loop.carried + at] for at in backward.made]
        rows += [*saved[count:], *(tables[at] for at in backward.tables)]
        read = [fixed[at] for at in backward.reads]
        last, made = recur(backward.step, carried, rows, read, backwards=True)
        places = (
            *backward.carried,
            *(loop.carried + loop.tables + at for at in backward.fixed),
            *(loop.carried + at for at in backward.rows),
        )
        found = dict(zip(places, (*last, *made)))
        return (None, *(found.get(at) for at in range(count)))


def _recorded(
    function: Function, start: Nest, carried: Tensors, nest: Nest, tables: Tensors
) -> tuple[_Loop, Nest]:
    """The loops of a function, and the nest of its results."""
    body, differentiates = Body(), torch.is_grad_enabled()
    try:
        with recorded_into(body):
            before = [beginning(each, differentiates and each.is_floating_point()) for each in carried]
            row = [beginning(each, differentiates and each.requires_grad, row=0) for each in tables]
            for each in (*before, *row):
                body.number_of(each.lazy, each)
            given = start.filled([writable(each) for each in before])
            after, made = _called(function, given, nest.filled(row))
            _SCAN.check_unwritten(body, len(before))
            of_made, results = emptied(made)
            recording = _Recording(body, before, row, _SCAN.carried_on(start, before, after), results)
            return recording.loop(any(each.requires_grad for each in (*carried, *tables))), of_made
    finally:
        body.give_back()


class _Recording:
    """A function's call, recorded: what it takes, and what it gives."""

    def __init__(
        self, body: Body, before: Sequence[XlaTensor], row: Sequence[XlaTensor], after: Tensors, made: Tensors
    ) -> None:
        self._body, self._before, self._row = body, before, row
        self._after, self._made = after, made
        self._given = [_SCAN.number(body, each) for each in (*after, *made)]
        self._inner = len(before) + len(row)
        self._fixed = tuple(body.taken[self._inner :])
        self._numbers = tuple(each.number for each in body.inputs)
        self._forward = tuple(body.operations)

    def loop(self, has_gradients: bool) -> _Loop:
        """The loop, with its gradients' where tensors have some: these, or others that the function reads."""
        backward, saved = None, list[int]()
        carried = len(self._before)
        is_reached = any(each.requires_grad for each in (*self._after, *self._made))
        if is_reached and (has_gradients or _with_gradient(self._fixed)):
            backward, saved = self._backward()
        step = BodyStep(self._forward, self._numbers, (*self._given, *saved), carried)
        return _Loop(step.named(), carried, len(self._row), self._fixed, backward)

    def _backward(self) -> tuple[_Backward, list[int]]:
        """The gradients' loop, and numbers of what the forward one keeps for it."""
        carried, made, rows, fixed = map(_with_gradient, (self._before, self._made, self._row, self._fixed))
        of_carried = [beginning(self._before[at]) for at in carried]
        of_made = [beginning(self._made[at]) for at in made]
        sums = [beginning(self._fixed[at]) for at in fixed]
        taken = [[_SCAN.number(self._body, each) for each in group] for group in (of_carried, sums, of_made)]
        ends = [self._after[at] for at in carried] + [self._made[at] for at in made]
        reached = [self._before[at] for at in carried] + [self._fixed[at] for at in fixed]
        reached += [self._row[at] for at in rows]
        found = _gradients(ends, reached, [*of_carried, *of_made])
        behind = len(carried) + len(fixed)
        totals = [total + one for total, one in zip(sums, found[len(carried) :])]
        given = [
            _SCAN.number(self._body, each) for each in (*found[: len(carried)], *totals, *found[behind:])
        ]
        operations, saved = self._needed(given)
        used = used_by(operations)
        tables = [at for at in range(len(self._row)) if self._numbers[len(self._before) + at] in used]
        if not (tables or saved or made):
            tables = [0]  # it counts the trips
        reads = [at for at in range(len(self._fixed)) if self._numbers[self._inner + at] in used]
        numbers = [*taken[0], *taken[1], *taken[2], *saved]
        numbers += [self._numbers[len(self._before) + at] for at in tables]
        numbers += [self._numbers[self._inner + at] for at in reads]
        step = BodyStep(tuple(operations), tuple(numbers), tuple(given), behind).named()
        return _Backward(step, carried, made, rows, fixed, len(saved), tuple(tables), tuple(reads)), saved

    def _needed(self, given: Sequence[int]) -> tuple[list[RecordedOperation], list[int]]:
        """The backward pass's operations with the views that it makes again, and what is kept for it."""
        backward = self._body.operations[len(self._forward) :]
        makers = {number: each for each in self._forward for number in each.results if number is not None}
        there = {number for each in backward for number in each.results} | set(
            self._numbers[len(self._before) :]
        )
        again: dict[int, RecordedOperation] = {}
        saved: dict[int, None] = {}

        def need(number: int) -> None:
            maker = makers.get(number)
            if maker is not None and _is_view(maker.target):
                for viewed in used_by([maker]):
                    need(viewed)
                again[id(maker)] = maker
            elif maker is not None or (number in self._numbers and number not in there):
                saved[number] = None

        for number in sorted({*used_by(backward), *given} - there):
            need(number)
        return [*again.values(), *backward], list(saved)


def _is_view(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and bool(target.is_view)


def _gradients(ends: Tensors, reached: Tensors, gradients: Tensors) -> list[torch.Tensor]:
    """Gradients of what was reached; zeros where nothing comes from it."""
    pairs = [(end, gradient) for end, gradient in zip(ends, gradients) if end.requires_grad]
    outputs, given = zip(*pairs)
    found = torch.autograd.grad(outputs, reached, given, allow_unused=True)
    return [torch.zeros_like(each) if one is None else one for one, each in zip(found, reached)]


def _called(function: Function, carried: Any, row: Any) -> tuple[Any, Any]:
    result = function(carried, row)
    if not isinstance(result, tuple) or len(result) != 2:
        raise ValueError(
            "The function of scan must return two values: what is carried on, and the row's results."
        )
    return result


def _with_gradient(tensors: Tensors) -> tuple[int, ...]:
    return tuple(at for at, each in enumerate(tensors) if each.requires_grad)


def _check_rows(tables: Tensors) -> None:
    counts = {len(each) if each.dim() else 0 for each in tables}
    if len(counts) != 1 or counts == {0}:
        raise ValueError(
            "All tensors that scan goes through must have the same number of rows, and one at least; these "
            f"have {sorted(counts)}."
        )
