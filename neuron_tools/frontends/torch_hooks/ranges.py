"""Host ranges: `record_function`, optimizer steps, profiler steps and backward, as records of the capture.

Every optimizer of PyTorch runs its step inside `record_function("Optimizer.step#AdamW.step")`, so one hook
sees the user's ranges and the optimizers', also when a step raises.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.profiler import record_function

from neuron_tools.frontends.torch_hooks.disguise import disguised
from neuron_tools.frontends.torch_hooks.modules import name_module
from neuron_tools.frontends.torch_hooks.recorder import HostRecorder
from neuron_tools.frontends.torch_hooks.training import refuse_training
from neuron_tools.records.capture_log import RecordKind

_OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#(\w+)\.\w+$")


def install(native: HostRecorder, define_module: Callable[[str, str], int]) -> Callable[[], None]:
    """Install the range hooks; returns a function that takes them out."""
    hooks = RangeHooks(native, define_module)
    replacements: list[tuple[Any, str, Any]] = [
        (record_function, "__enter__", hooks.enter(record_function.__enter__)),
        (record_function, "__exit__", hooks.exit(record_function.__exit__)),
        (torch.Tensor, "backward", hooks.ranged("Tensor.backward", _backward(torch.Tensor.backward))),
        (torch.profiler.profile, "start", hooks.start(torch.profiler.profile.start)),
        (torch.profiler.profile, "step", hooks.step(torch.profiler.profile.step)),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    for owner, name, function in replacements:
        setattr(owner, name, function)

    def uninstall() -> None:
        for owner, name, function in originals:
            setattr(owner, name, function)

    return uninstall


def _backward(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Tensor.backward` that refuses devices which cannot train."""

    @functools.wraps(original)
    def backward(loss: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_training(loss)
        return original(loss, *args, **kwargs)

    return backward


class RangeHooks:
    """Makes the replacements; open ranges are kept on the `record_function` object itself."""

    def __init__(self, native: HostRecorder, define_module: Callable[[str, str], int]) -> None:
        self._native = native
        self._define_module = define_module
        self._optimizer_modules: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._compiling = torch.compiler.is_dynamo_compiling

    def enter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`record_function.__enter__` that notes the time."""

        def enter(scope: Any) -> Any:
            if not self._compiling():
                scope._neuron_range = self._open(scope.name)
            return original(scope)

        return disguised(enter, original)

    def exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`record_function.__exit__` that records the range."""

        def leave(scope: Any, *error: Any) -> Any:
            opened = scope.__dict__.pop("_neuron_range", None) if not self._compiling() else None
            if opened is not None:
                self._close(opened)
            return original(scope, *error)

        return disguised(leave, original)

    def ranged(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose every call is a range called `name`."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._compiling():
                return original(*args, **kwargs)
            opened = self._open(name)
            try:
                return original(*args, **kwargs)
            finally:
                self._close(opened)

        return disguised(call, original)

    def start(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.profiler.profile.start` that notes when the first step begins."""

        def start(profiler: Any) -> Any:
            found = original(profiler)
            profiler._neuron_step_start_ns = self._native.host_now_ns()
            return found

        return disguised(start, original)

    def step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.profiler.profile.step` that records the step it ends, from the end of the one before."""

        def step(profiler: Any) -> Any:
            now_ns = self._native.host_now_ns()
            # A profiler that was started before the capture was has no beginning of its first step.
            start_ns = getattr(profiler, "_neuron_step_start_ns", now_ns)
            profiler._neuron_step_start_ns = now_ns
            name = self._name(f"ProfilerStep#{profiler.step_num}")
            self._native.record_range(name, start_ns, now_ns, int(RecordKind.STEP))
            return original(profiler)

        return disguised(step, original)

    def _open(self, name: str) -> tuple[str, int, int, bool | None]:
        """Title, start in ns, previous module, previous optimizer mark (None: not an optimizer's range)."""
        self._native.mark_boundary()
        optimizer = _OPTIMIZER.match(name)
        if optimizer is None:
            return name, self._native.host_now_ns(), 0, None
        action, class_name = optimizer.groups()
        marked = self._native.set_optimizer(True)
        module = self._native.set_module(self._optimizer_module(class_name))
        return f"{class_name}.{action}", self._native.host_now_ns(), module, marked

    def _close(self, opened: tuple[str, int, int, bool | None]) -> None:
        title, start_ns, module, marked = opened
        end_ns = self._native.host_now_ns()
        self._native.record_range(self._name(title), start_ns, end_ns, int(RecordKind.RANGE))
        if marked is not None:
            self._native.set_module(module)
            self._native.set_optimizer(marked)

    def _optimizer_module(self, class_name: str) -> int:
        number = self._optimizer_modules.get(class_name)
        if number is None:
            path = f"optimizer ({class_name})"
            number = self._optimizer_modules[class_name] = self._define_module(path, class_name)
            name_module(number, path, class_name)
        return number

    def _name(self, title: str) -> int:
        number = self._names.get(title)
        if number is None:
            number = self._names[title] = self._native.intern_name(title)
        return number
