"""Python's own `range` in kernels: while a kernel is traced, its modules see one that notes the variable."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.loops import LoopRange, known_bound

_USERS: Counter[int] = Counter()  # how many kernels run that see the `range` of a module, by its namespace
_CHANGING = threading.Lock()


def _kernel_range(*bounds: Any) -> Any:
    trace = tracing.OF_THREAD.trace
    for bound in bounds:  # helpers of kernels make hundreds of thousands of ranges
        if type(bound) is not int:
            bounds = tuple(int(known_bound(bound)) for bound in bounds)
            break
    noting = trace is not None and trace.noting_loops
    return LoopRange(*bounds, depth=2) if noting else range(*bounds)


@contextmanager
def traced_ranges(function: Callable[..., Any]) -> Iterator[None]:
    """Replace `range` in the modules of a kernel and of the functions it can call, for the block.

    The last of several threads that run kernels of a module gives it its `range` back.
    """
    with _CHANGING:
        spaces = [s for s in _kernel_spaces(function) if s.get("range", _kernel_range) is _kernel_range]
        for space in spaces:
            space["range"] = _kernel_range
            _USERS[id(space)] += 1
    try:
        yield
    finally:
        with _CHANGING:
            for space in spaces:
                _leave(space)


def _leave(space: dict[str, Any]) -> None:
    _USERS[id(space)] -= 1
    if _USERS[id(space)] == 0:
        del _USERS[id(space)]
        if space.get("range") is _kernel_range:
            del space["range"]


def _kernel_spaces(function: Callable[..., Any]) -> list[dict[str, Any]]:
    """Globals of the kernel and of every module of kernel code reachable from it by name."""
    start = getattr(function, "__globals__", None)
    if start is None:
        return []
    found: dict[int, dict[str, Any]] = {}
    waiting = [start]
    while waiting:
        space = waiting.pop()
        if id(space) in found or not _is_kernel_code(space):
            continue
        found[id(space)] = space
        for value in list(space.values()):
            if isinstance(value, ModuleType):  # the language's would look for names like "func"
                continue
            function_of = getattr(value, "func", value)
            if isinstance(function_of, FunctionType):
                waiting.append(function_of.__globals__)
            elif isinstance(value, type) and value.__module__ in sys.modules:
                waiting.append(vars(sys.modules[value.__module__]))
    return list(found.values())


def _is_kernel_code(space: dict[str, Any]) -> bool:
    """Whether a module imports the language, and is not part of it."""
    name = str(space.get("__name__", ""))
    if name.split(".")[0] in ("neuron_tools", "numpy", "torch", "jax", "nki", "neuronxcc"):
        return False
    return name == "__main__" or any(_is_language(value) for value in space.values())


def _is_language(value: Any) -> bool:
    """Whether a value is a module of the language, under AWS's name or ours."""
    if not isinstance(value, ModuleType):
        return False
    return hasattr(value, "__nki_names__") or value.__name__.startswith("neuron_tools.nki")
