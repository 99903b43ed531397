"""Which NeuronCore a traced model runs on."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Any

import torch

from neuron_tools.device.api.choice import CHOICE
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.loaded_models import LOADED, Turns

_turns: ContextVar[Turns | None] = ContextVar("cores_in_turn", default=None)
_otherwise: list[Turns] = []
"""Cores in turn of all calls for which nothing else chose one, where `choose_cores` said so."""
_placed: ContextVar[bool] = ContextVar("core_is_chosen", default=False)


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
    previous, token = torch.neuron.current_device(), _placed.set(True)
    torch.neuron._exchange_device(core)
    try:
        yield
    finally:
        torch.neuron._exchange_device(previous)
        _placed.reset(token)


@contextmanager
def on_cores(cores: Sequence[int]) -> Iterator[None]:
    """Run traced models on several cores in turn in the block, one call on each.

    Raises:
        TraceError: One of them does not exist.
    """
    check_cores(cores)
    token = _turns.set(Turns(cores))
    try:
        yield
    finally:
        _turns.reset(token)


def choose_cores(cores: Sequence[int]) -> None:
    """Run traced models for which nothing else chooses a core on several in turn from now on.

    Raises:
        TraceError: One of them does not exist.
    """
    check_cores(cores)
    _otherwise[:] = [Turns(cores)]


def next_core(artifact: torch.Tensor | None = None) -> AbstractContextManager[None]:
    """Run one call on the core whose turn it is, or of its model; where it is anyway, where neither is known.

    Args:
        artifact: The archive that is called.
    """
    turns = _turns.get()
    if turns is None and not _placed.get():
        turns = _otherwise[0] if _otherwise else _own_turns(artifact)
    return nullcontext() if turns is None else on_core(next(turns))


def _own_turns(artifact: torch.Tensor | None) -> Turns | None:
    """The cores of the model that has an archive; none where the process is a rank, or chose a core."""
    if artifact is None or _is_rank() or CHOICE.is_made or torch.neuron.current_device() != 0:
        return None
    return LOADED.turns_of(artifact, torch.neuron.device_count())


def _is_rank() -> bool:
    return "LOCAL_RANK" in os.environ or (
        torch.distributed.is_available() and torch.distributed.is_initialized()
    )


def note_loaded(models: Sequence[torch.nn.Module]) -> None:
    """Note that modules were loaded as one model: on the block's cores, or those that are used least."""
    turns = _turns.get()
    LOADED.add(models, () if turns is None else turns.cores)


def all_cores() -> range:
    """The cores of this process."""
    return range(torch.neuron.device_count())


class _Outer(threading.local):
    """Where a thread was before it called a model, and the models that this one calls."""

    def __init__(self) -> None:
        self.places: list[tuple[int, Token[bool]]] = []


class _Placement:
    """Makes a core current while a model runs."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = cores
        self._calls = 0
        self._outer = _Outer()

    def before(self, module: Any, inputs: Any) -> None:
        """Take the next core."""
        self._outer.places.append((torch.neuron.current_device(), _placed.set(True)))
        torch.neuron._exchange_device(self._cores[self._calls % len(self._cores)])
        self._calls += 1

    def after(self, module: Any, inputs: Any, results: Any) -> None:
        """Go back to the core before."""
        core, token = self._outer.places.pop()
        torch.neuron._exchange_device(core)
        _placed.reset(token)


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
    kind = torch.nn.Module  # a model that was loaded calls hooks, but its own class refuses to take them
    hooks = (
        kind.register_forward_pre_hook(model, placement.before),
        kind.register_forward_hook(model, placement.after, always_call=True),
    )
    model.__dict__["_neuron_placement"] = hooks
    LOADED.add([model], cores)
