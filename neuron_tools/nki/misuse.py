"""Turn Python's errors in calls of the language into errors at the kernel's line that show the signature.

A kernel that forgets an argument, misspells one or passes the wrong type raises Python's error, often deep
inside this package. Errors in the kernel's own Python, and in libraries that it calls itself, stay as they
are.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from neuron_tools.nki.call_sites import INTERNAL_MODULES, is_internal
from neuron_tools.nki.errors import (
    NkiError,
    NkiValidationError,
    OutOfBoundsError,
    WrongTypeError,
    WrongValueError,
)

RAISED = (TypeError, ValueError, AttributeError, LookupError, OverflowError)
"""What Python and NumPy raise for arguments that they cannot take."""
_HELPERS = ("numpy", "ml_dtypes")
"""Libraries that compute for this package: an error that they raise when it calls them counts as its own."""
_SIGNATURE = re.compile(r"(\w+)\(\) (?:missing|got an unexpected|got multiple|takes|got some)")
"""Of a module's function; Python names methods and nested functions in full, which are the kernel's own."""


def explained(error: Exception, stop: CodeType) -> NkiError | None:
    """The error to raise for the kernel in place of one of Python's.

    Args:
        error: Of one of the types in RAISED, caught where the kernel was called.
        stop: The code that called the kernel.

    Returns:
        None where the kernel's own Python is at fault.
    """
    if isinstance(error, NkiError):
        return None
    frames = list(_kernel_frames(error.__traceback__, stop))
    inner = len(frames)
    while inner and not _is_ours(frames[inner - 1][0]) and _is_helper(frames[inner - 1][0]):
        inner -= 1
    if not inner:
        return None
    if not _is_ours(frames[inner - 1][0]):
        return _wrong_arguments(error, *frames[-1]) if inner == len(frames) else None
    outer = inner
    while outer and _is_ours(frames[outer - 1][0]):
        outer -= 1
    if not outer:
        return None
    called = _called_name(frames[outer][0].f_code)
    text = f"{called} cannot take what it was given: {error}{_taken_by(called)}"
    return _converted(error, text, _place(*frames[outer - 1]))


def _kernel_frames(trace: TracebackType | None, stop: CodeType) -> Iterator[tuple[FrameType, int]]:
    """Frames and lines of a traceback from the kernel's own function on."""
    inside = False
    while trace is not None:
        if inside:
            yield trace.tb_frame, trace.tb_lineno
        inside = inside or trace.tb_frame.f_code is stop
        trace = trace.tb_next


def _is_ours(frame: FrameType) -> bool:
    return id(frame.f_globals) in INTERNAL_MODULES or is_internal(frame)


def _is_helper(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _HELPERS


def _place(frame: FrameType, line: int) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{line} in {getattr(code, 'co_qualname', code.co_name)}"


def _called_name(code: CodeType) -> str:
    """The function that the kernel called; generated ones have its name for a file's."""
    return code.co_filename.strip("<>") if code.co_filename.startswith("<") else code.co_name


def _wrong_arguments(error: Exception, frame: FrameType, line: int) -> NkiError | None:
    """The error of a call that leaves arguments out, misspells them or gives too many."""
    found = _SIGNATURE.match(str(error)) if isinstance(error, TypeError) else None
    if found is None:
        return None
    place, name = _place(frame, line), found[1]
    taken = _taken_by(name)
    own = frame.f_globals.get(name)
    if not taken or (inspect.isfunction(own) and not _is_ours_by_name(own.__module__)):
        return None
    return _converted(error, f"{error}{taken}", place)


def _is_ours_by_name(module: str | None) -> bool:
    return str(module).partition(".")[0] == "neuron_tools"


def _taken_by(name: str) -> str:
    """What a function of the language takes, as the end of a sentence; "" where there is no such function."""
    function = _function(name)
    if function is None:
        return ""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
    return f"; it takes {inspect.Signature(parameters)}"


def _function(name: str) -> Callable[..., Any] | None:
    from neuron_tools.nki import isa, language, tracer
    from neuron_tools.nki.older import isa as older_isa, language as older_language

    trace = tracer.running()
    older = (older_isa, older_language) if trace is not None and trace.older_dialect else ()
    for module in (*older, isa, language):
        function = getattr(module, name, None) if name in module.__all__ else None
        if inspect.isfunction(function):
            return function
    return None


def _converted(error: Exception, text: str, place: str) -> NkiError:
    kind: type[NkiValidationError] = WrongValueError
    if isinstance(error, IndexError):
        kind = OutOfBoundsError
    elif isinstance(error, (TypeError, AttributeError)):
        kind = WrongTypeError
    return kind(text, place)
