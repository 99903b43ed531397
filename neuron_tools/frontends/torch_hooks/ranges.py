"""Host ranges: `record_function`, optimizer steps, profiler steps and backward, as records of the capture.

Every optimizer of PyTorch runs its step inside `record_function("Optimizer.step#AdamW.step")`, so one hook
sees the user's ranges and the optimizers', also when a step raises. The hooks leave no row in torch.profiler.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.autograd.profiler import record_function

from neuron_tools.device.native import around
from neuron_tools.frontends.torch_hooks.modules import name_module
from neuron_tools.frontends.torch_hooks.recorder import HostRecorder
from neuron_tools.records.capture_log import RecordKind

_OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#(\w+)\.\w+$")

_Opened: TypeAlias = tuple[str, int, int, "bool | None"]
"""Title, start in ns, previous module, previous optimizer mark (None: not an optimizer's range)."""


def install(native: HostRecorder, define_module: Callable[[str, str], int]) -> Callable[[], None]:
    """Install the range hooks; returns a function that takes them out."""
    hooks = RangeHooks(native, define_module)
    replacements: list[tuple[Any, str, Any]] = [
        (record_function, "__enter__", around(record_function.__enter__, hooks.enter, None)),
        (record_function, "__exit__", around(record_function.__exit__, hooks.leave, None)),
        (torch.Tensor, "backward", around(torch.Tensor.backward, hooks.begin_backward, hooks.end_backward)),
        (torch.profiler.profile, "start", around(torch.profiler.profile.start, None, hooks.started)),
        (torch.profiler.profile, "step", around(torch.profiler.profile.step, hooks.step, None)),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    for owner, name, function in replacements:
        setattr(owner, name, function)

    def uninstall() -> None:
        for owner, name, function in originals:
            setattr(owner, name, function)

    return uninstall


class RangeHooks:
    """What is done around each function; open ranges are kept on the `record_function` object itself."""

    def __init__(self, native: HostRecorder, define_module: Callable[[str, str], int]) -> None:
        self._native = native
        self._define_module = define_module
        self._optimizer_modules: dict[str, int] = {}
        self._names: dict[str, int] = {}

    def enter(self, scope: Any) -> None:
        """Before `record_function.__enter__`: note the time."""
        scope._neuron_range = self._open(scope.name)

    def leave(self, scope: Any) -> None:
        """Before `record_function.__exit__`: record the range, unless it was open before the hooks came."""
        opened = scope.__dict__.pop("_neuron_range", None)
        if opened is not None:
            self._close(opened)

    def begin_backward(self, loss: Any) -> _Opened:
        """Before `Tensor.backward`: note the time."""
        return self._open("Tensor.backward")

    def end_backward(self, loss: Any, opened: _Opened) -> None:
        """After `Tensor.backward`, also when it raised: record the range."""
        self._close(opened)

    def started(self, profiler: Any, state: object) -> None:
        """After `torch.profiler.profile.start`: note when the first step begins."""
        profiler._neuron_step_start_ns = self._native.host_now_ns()

    def step(self, profiler: Any) -> None:
        """Before `torch.profiler.profile.step`: record the step it ends, from the end of the one before."""
        now_ns = self._native.host_now_ns()
        # A profiler that was started before the capture was has no beginning of its first step.
        start_ns = getattr(profiler, "_neuron_step_start_ns", now_ns)
        profiler._neuron_step_start_ns = now_ns
        name = self._name(f"ProfilerStep#{profiler.step_num}")
        self._native.record_range(name, start_ns, now_ns, int(RecordKind.STEP))

    def _open(self, name: str) -> _Opened:
        self._native.mark_boundary()
        optimizer = _OPTIMIZER.match(name)
        if optimizer is None:
            return name, self._native.host_now_ns(), 0, None
        action, class_name = optimizer.groups()
        marked = self._native.set_optimizer(True)
        module = self._native.set_module(self._optimizer_module(class_name))
        return f"{class_name}.{action}", self._native.host_now_ns(), module, marked

    def _close(self, opened: _Opened) -> None:
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
