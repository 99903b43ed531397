"""Which NeuronCore a traced model runs on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch

from neuron_tools.frontends.torch_trace.errors import TraceError


def check_cores(cores: Sequence[int]) -> None:
    """Refuse cores that this process does not have.

    Raises:
        TraceError: One of them does not exist.
    """
    count = torch.neuron.device_count()
    missing = [core for core in cores if not 0 <= core < count]
    if missing:
        raise TraceError(
            f"There is no NeuronCore {missing[0]}: this process has {count}, numbered from 0; set "
            "NEURON_RT_NUM_CORES or NEURON_RT_VISIBLE_CORES to have more."
        )


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Run traced models on a core in the block.

    Raises:
        TraceError: There is no such core.
    """
    check_cores([core])
    previous = torch.neuron.current_device()
    torch.neuron.set_device(core)
    try:
        yield
    finally:
        torch.neuron.set_device(previous)


_turns: ContextVar[Iterator[int] | None] = ContextVar("cores_in_turn", default=None)


@contextmanager
def on_cores(cores: Sequence[int]) -> Iterator[None]:
    """Run traced models on several cores in turn in the block, one call on each.

    Raises:
        TraceError: One of them does not exist.
    """
    check_cores(cores)
    token = _turns.set(itertools.cycle(cores))
    try:
        yield
    finally:
        _turns.reset(token)


def next_core() -> AbstractContextManager[None]:
    """Run one call on the core whose turn it is; where it is anyway outside `on_cores`."""
    turns = _turns.get()
    return nullcontext() if turns is None else on_core(next(turns))


def all_cores() -> range:
    """The cores of this process."""
    return range(torch.neuron.device_count())


class _Placement:
    """Makes a core current while a model runs."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = cores
        self._calls = 0
        self._outer: list[int] = []

    def before(self, module: Any, inputs: Any) -> None:
        """Take the next core."""
        self._outer.append(torch.neuron.current_device())
        torch.neuron.set_device(self._cores[self._calls % len(self._cores)])
        self._calls += 1

    def after(self, module: Any, inputs: Any, results: Any) -> None:
        """Go back to the core before."""
        torch.neuron.set_device(self._outer.pop())


def place(model: torch.nn.Module, cores: Sequence[int]) -> None:
    """Let a model run on one core, or on several in turn, from now on.

    Args:
        model: A traced model.
        cores: Indices of this process's cores.

    Raises:
        TraceError: One of them does not exist.
    """
    check_cores(cores)
    for hook in model.__dict__.pop("_neuron_placement", ()):
        hook.remove()
    placement = _Placement(tuple(cores))
    hooks = (model.register_forward_pre_hook(placement.before), model.register_forward_hook(placement.after))
    model.__dict__["_neuron_placement"] = hooks
