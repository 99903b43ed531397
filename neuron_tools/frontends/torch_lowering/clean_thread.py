"""Runs lowering on a thread of its own.

The device asks for a lowering from inside a kernel, torch.compile from inside Dynamo: there, dispatch
keys are excluded, modes and hooks are active, and autograd's threads have small stacks. Tracing wants none
of that.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from neuron_tools.device import native

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_executor: ThreadPoolExecutor | None = None
_lock = threading.Lock()
_THREAD_NAME = "neuron-lowering"


class _NotFromTracing(logging.Filter):
    """PyTorch logs each operator that cannot run on fake tensors: on our thread that is expected."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.threadName or "").startswith(_THREAD_NAME)


logging.getLogger("torch._subclasses.fake_tensor").addFilter(_NotFromTracing())


def run_clean(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call `function` on the lowering thread and wait for its result.

    Raises:
        Exception: Whatever `function` raises.
    """
    if threading.current_thread().name.startswith(_THREAD_NAME):
        return function(*args, **kwargs)
    return _started().submit(function, *args, **kwargs).result()


def _started() -> ThreadPoolExecutor:
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(1, thread_name_prefix=_THREAD_NAME, initializer=native.hide_thread)
        return _executor


def _forget() -> None:
    """A forked child has no threads: it starts its own."""
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
