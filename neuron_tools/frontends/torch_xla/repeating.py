"""`while_loop` on the device `xla`: a loop of the program that goes on as long as values say so.

The condition and the step are recorded once. Values are computed trip by trip when the loop is recorded, so
that it is known by how many trips an execution is timed; the graph is the same for any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.device import native
from neuron_tools.frontends.torch_lowering.repetition import repeat
from neuron_tools.frontends.torch_xla import spread
from neuron_tools.frontends.torch_xla.body import Body, BodyStep
from neuron_tools.frontends.torch_xla.carrying import LoopFunction, Tensors, beginning
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.execution import current_graph, is_eager, recorded_into, sync
from neuron_tools.frontends.torch_xla.graph import RecordedOperation, ValueNumber
from neuron_tools.frontends.torch_xla.nest import Nest, emptied
from neuron_tools.frontends.torch_xla.origin import current_origin
from neuron_tools.frontends.torch_xla.tensor import LazyValue, XlaTensor
from neuron_tools.frontends.torch_xla.traced_graph import with_its_lines
from neuron_tools.frozen import frozen

Function = Callable[..., Any]
_LOOP = LoopFunction("while_loop")


def while_loop(condition: Function, step: Function, carried: Any) -> Any:
    """Call a function as long as a condition holds, each time with what the call before left.

    Args:
        condition: Of what is carried; gives one truth value, a tensor of bool.
        step: Likewise; gives what is carried on.
        carried: What both are called with first: a tuple of tensors on the device, in any nest.

    Returns:
        What the last call left. No gradients pass through, as with PyTorch/XLA.

    Raises:
        ValueError: What is carried changes its nest, shape or type, the condition gives something else than
            one truth value, or a function writes in place to another tensor.
        XlaError: Tensors are on different devices, a function looks at a value, or another loop is around.
    """
    start, tensors = emptied(carried)
    _LOOP.check_devices(tensors)
    if isinstance(current_graph(), Body):
        raise XlaError("A while_loop within another loop is not there: let one function do what both do.")
    with torch.no_grad():
        holds = _recorded(condition, start, tensors, _truth_value)
        trip = _recorded(step, start, tensors, lambda before, after: _LOOP.carried_on(start, before, after))
        return start.filled(_run(holds, trip, tensors))


def while_loop_of_graphs(
    condition: Function,
    step: Function,
    carried: Sequence[Any],
    others: Sequence[Any],
    mutated_arg_indices: str = "",
) -> Any:
    """What `torch._higher_order_ops.while_loop` calls for tensors of the device.

    Args:
        condition: Dynamo's graph of the condition; it takes what is carried and `others`.
        step: Likewise, of the step.
        carried: Tensors, or numbers.
        others: What both read.
        mutated_arg_indices: Which of all these the functions write; "" for none.
    """
    if mutated_arg_indices or not all(isinstance(each, torch.Tensor) for each in carried):
        return _trip_by_trip(condition, step, tuple(carried), others)
    holds, trip = with_its_lines(condition), with_its_lines(step)
    return while_loop(
        lambda *values: _only(holds(*values, *others)),
        lambda *values: tuple(trip(*values, *others)),
        tuple(carried),
    )


def refuse_gradients(*_: Any) -> Any:
    """What it calls where gradients shall pass through.

    Raises:
        XlaError: Always.
    """
    raise XlaError(
        "No gradients pass through while_loop on xla: call it under torch.no_grad(), or use "
        "torch_xla.experimental.scan for a number of trips that is known."
    )


def _trip_by_trip(
    condition: Function, step: Function, carried: tuple[Any, ...], others: Sequence[Any]
) -> Any:
    """Without a loop of the program: the condition is looked at before each trip."""
    while bool(_only(condition(*carried, *others))):
        carried = tuple(step(*carried, *others))
    return tuple(each.clone() if isinstance(each, torch.Tensor) else each for each in carried)


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


@frozen
class _Part:
    """A recorded function.

    Attributes:
        operations: In order.
        taken: Numbers of what is carried and of what it reads from outside.
        given: Numbers of what it gives.
        fixed: Tensors from outside that it reads.
    """

    operations: tuple[RecordedOperation, ...]
    taken: tuple[int, ...]
    given: tuple[int, ...]
    fixed: tuple[XlaTensor, ...]

    def named(self, before: int, behind: int, carried: int) -> str:
        """The name of its step, which takes tensors of the other function too: before and behind its own."""
        count = len(self.taken) - len(self.fixed)
        taken = (*self.taken[:count], *[-1] * before, *self.taken[count:], *[-1] * behind)
        return BodyStep(self.operations, taken, self.given, carried).named()


def _recorded(
    function: Function, start: Nest, carried: Tensors, check: Callable[[Tensors, Any], Tensors]
) -> _Part:
    body = Body()
    try:
        with recorded_into(body):
            before = [beginning(each) for each in carried]
            for each in before:
                body.number_of(each.lazy, each)
            results = check(before, function(*start.filled(before)))
            _LOOP.check_unwritten(body, len(before))
            given = tuple(_LOOP.number(body, each) for each in results)
            numbers = tuple(each.number for each in body.inputs)
            return _Part(tuple(body.operations), numbers, given, tuple(body.taken[len(before) :]))
    finally:
        body.give_back()


def _truth_value(before: Tensors, value: Any) -> Tensors:
    if isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.numel() == 1:
        return [value.reshape(())]
    raise ValueError(
        f"The condition of while_loop must give one truth value, a tensor of bool, and gives {_shown(value)}."
    )


def _shown(value: Any) -> str:
    return (
        f"a tensor of {list(value.shape)} ({value.dtype})" if isinstance(value, torch.Tensor) else repr(value)
    )


def _run(holds: _Part, trip: _Part, carried: Tensors) -> Sequence[XlaTensor]:
    """Compute the values and add the loop to the graph."""
    fixed = [*holds.fixed, *trip.fixed]
    condition = holds.named(0, len(trip.fixed), 0)
    step = trip.named(len(holds.fixed), 0, len(carried))
    graph, origin = current_graph(), current_origin()
    with native.unrecorded(), spread.whole_values():
        groups = [
            [ValueNumber(graph.number_of(each.lazy, each)) for each in group] for group in (carried, fixed)
        ]
        inner = [[each.lazy.inner for each in group] for group in (carried, fixed)]
        last, trips = repeat(condition, step, *inner)
        results = [XlaTensor(LazyValue(value), each.dtype) for value, each in zip(last, carried)]
        leaves, structure = pytree.tree_flatten(((condition, step, *groups, trips), {}))
        operator = torch.ops.neuron_lowering.repeat.default
        graph.add(operator, leaves, structure, [each.lazy for each in results], origin)
        graph.trips.append(trips)
    if is_eager():
        sync()
    return results
