"""Keeps Dynamo away from what the device calls back.

The callbacks run below user code that torch.compile may be tracing; Dynamo would otherwise try to compile
the recorder itself, and everything it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def untraced(function: Function) -> Function:
    """Mark a Python function or method, and all that it calls, as never to be compiled; returns it."""
    from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

    code = getattr(function, "__func__", function).__code__
    set_code_exec_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
    return function
