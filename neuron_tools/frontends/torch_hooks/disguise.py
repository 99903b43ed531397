"""Makes a wrapper look like the function it wraps to whoever judges functions by their file.

Dynamo decides by file name what it traces: a wrapper around `Module.__call__` must be skipped as an outermost
frame (or all compiled modules share one frame's recompile limit) and inlined elsewhere, exactly as PyTorch's
own function is. Tracebacks and the device's search for the user's frame pass over it for the same reason.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def disguised(wrapper: Function, original: Any) -> Function:
    """`wrapper` with the name, file and first line of `original`; unchanged where that is not Python code."""
    functools.update_wrapper(wrapper, original)
    code = getattr(original, "__code__", None)
    if isinstance(wrapper, types.FunctionType) and isinstance(code, types.CodeType):
        wrapper.__code__ = wrapper.__code__.replace(
            co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=code.co_firstlineno
        )
    return wrapper
