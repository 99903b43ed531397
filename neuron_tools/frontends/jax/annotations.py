"""`jax.profiler`'s own annotations: their spans and steps go into the profile too."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.frontends.jax.patches import Patches
from neuron_tools.records.capture_log import RecordKind

_PROFILER = "jax._src.profiler"


class Annotations:
    """Records `TraceAnnotation` and `StepTraceAnnotation` while it is installed."""

    def __init__(self, recorder: PythonRecorder) -> None:
        self._recorder = recorder
        self._patches = Patches()

    def install(self) -> None:
        """Put the wrappers in."""
        from jax._src import profiler

        trace = profiler.TraceAnnotation
        step = profiler.StepTraceAnnotation
        self._patches.replace(trace, "__init__", self._naming(trace.__init__, step))
        self._patches.replace(trace, "__enter__", self._entering(trace.__enter__))
        self._patches.replace(trace, "__exit__", self._leaving(trace.__exit__))

    def uninstall(self) -> None:
        """Take the wrappers out."""
        self._patches.undo()

    def _naming(self, initialise: Callable[..., None], step: type) -> Callable[..., None]:
        @functools.wraps(initialise)
        def wrapper(annotation: Any, name: str, *arguments: Any, **options: Any) -> None:
            initialise(annotation, name, *arguments, **options)
            if _is_of_jax(sys._getframe(1)):
                return
            kind = RecordKind.STEP if isinstance(annotation, step) else RecordKind.RANGE
            number = options.get("step_num")
            annotation._neuron_span = (name if number is None else f"{name} {number}", kind)

        return wrapper

    def _entering(self, enter: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(enter)
        def wrapper(annotation: Any) -> Any:
            annotation._neuron_start_ns = self._recorder.clock.now_ns()
            return enter(annotation)

        return wrapper

    def _leaving(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(leave)
        def wrapper(annotation: Any, *error: Any) -> Any:
            span = getattr(annotation, "_neuron_span", None)
            if span is not None:
                name, kind = span
                self._recorder.range(name, annotation._neuron_start_ns, self._recorder.clock.now_ns(), kind)
            return leave(annotation, *error)

        return wrapper


def _is_of_jax(creator: FrameType) -> bool:
    """Whether JAX annotates a function of its own (`annotate_function` makes the annotation in a wrapper)."""
    function = creator.f_locals.get("func") if creator.f_globals.get("__name__") == _PROFILER else None
    return str(getattr(function, "__module__", "")).startswith("jax.")
