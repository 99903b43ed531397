"""Requests of transformers' continuous batching, as ranges of the capture.

A request arrives when the thread that generates takes it in, between two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from neuron_tools.frontends.serving.requests import RequestRanges
from neuron_tools.late_import import after_import

_PACKAGE = "transformers.generation.continuous_batching"


def install() -> Callable[[], None]:
    """Record the requests from the import of continuous batching on; returns a function that stops it."""
    hooks = _Hooks()
    after_import(f"{_PACKAGE}.scheduler", hooks.put_in)
    return hooks.take_out


class _Hooks:
    def __init__(self) -> None:
        self._ranges = RequestRanges()
        self._originals: list[tuple[Any, str, Any]] | None = []

    def put_in(self) -> None:
        """Replace what begins, continues and ends requests, where transformers has it: 5.0 and later."""
        from transformers.generation.continuous_batching.requests import RequestState
        from transformers.generation.continuous_batching.scheduler import Scheduler

        told: dict[str, Callable[..., None]] = {
            "add_waiting_request": lambda _, state: self._ranges.arrive(state.request_id),
            "_schedule_request": lambda _, state, *rest, **others: self._ranges.take([state.request_id]),
            "finish_request": lambda _, request_id, *rest, **others: self._ranges.finish(request_id),
        }
        update = "update_and_check_completion"
        is_known = hasattr(RequestState, update) and all(hasattr(Scheduler, name) for name in told)
        if self._originals is None or not is_known:
            return  # the capture ended before the import, or it is an earlier version
        for name, tell in told.items():
            self._replace(Scheduler, name, _then(getattr(Scheduler, name), tell))
        self._replace(RequestState, update, self._giving(getattr(RequestState, update)))

    def take_out(self) -> None:
        """Put back what was there."""
        for owner, name, original in self._originals or ():
            setattr(owner, name, original)
        self._originals = None

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        assert self._originals is not None
        self._originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    def _giving(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def update(state: Any, *arguments: Any, **options: Any) -> Any:
            before = state.generated_len()
            answer = original(state, *arguments, **options)
            self._ranges.give(state.request_id, state.generated_len() - before)
            return answer

        return update


def _then(original: Callable[..., Any], tell: Callable[..., None]) -> Callable[..., Any]:
    @wraps(original)
    def told(*arguments: Any, **options: Any) -> Any:
        answer = original(*arguments, **options)
        tell(*arguments, **options)
        return answer

    return told
