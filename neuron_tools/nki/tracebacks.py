"""Tracebacks of kernels that end at the kernel's own line, without this package's frames."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.call_sites import INTERNAL_MODULES, is_internal
from neuron_tools.nki.errors import NkiError

TRACEBACK_VARIABLE = "NKI_TRACEBACK"
"""`full` keeps the frames of this package."""
_Call = TypeVar("_Call", bound=Callable[..., Any])


def short_tracebacks(call: _Call) -> _Call:
    """Make a function that runs kernels raise their errors with the user's frames alone.

    An error of Python's whose innermost frame is in this package or below it keeps all of them: it may be
    this package's own fault.
    """

    @functools.wraps(call)
    def called(*arguments: Any, **keywords: Any) -> Any:
        try:
            return call(*arguments, **keywords)
        except Exception as error:
            shown = error
        if tracing.running() is None and os.environ.get(TRACEBACK_VARIABLE) != "full":
            _shorten(shown)
        try:
            raise shown
        finally:
            del shown  # which refers to this frame by its traceback

    return called  # type: ignore[return-value]  # has the signature of the function that it wraps


def _shorten(error: BaseException) -> None:
    """Leave the user's frames in an error's traceback, and in those of what it was made from."""
    if not isinstance(error, NkiError) and not _ends_in_users_code(error.__traceback__):
        return
    shown: BaseException | None = error
    while shown is not None:
        shown.__traceback__ = _users_frames(shown.__traceback__)
        shown = shown.__cause__


def _ends_in_users_code(trace: TracebackType | None) -> bool:
    *_, innermost = (None, *_entries(trace))
    return innermost is not None and not _is_ours(innermost)


def _users_frames(trace: TracebackType | None) -> TracebackType | None:
    kept: TracebackType | None = None
    for entry in reversed([entry for entry in _entries(trace) if not _is_ours(entry)]):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_ours(entry: TracebackType) -> bool:
    return id(entry.tb_frame.f_globals) in INTERNAL_MODULES or is_internal(entry.tb_frame)
