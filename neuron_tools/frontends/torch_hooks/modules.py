"""Keeps the device's current module while an nn.Module is being called, and records each call as a range."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook

from neuron_tools.device.native import unseen
from neuron_tools.frontends.torch_hooks.disguise import disguised
from neuron_tools.frontends.torch_hooks.module_tree import ModuleTree, unwrapped
from neuron_tools.frontends.torch_hooks.recorder import HostRecorder
from neuron_tools.records.capture_log import RecordKind

TellCall = Callable[[str, Any, tuple[Any, ...], dict[str, Any]], None]
"""Takes a module's path, the module, and the arguments that it is called with."""


class ModuleEntry:
    """Stands in for `torch.nn.Module.__call__` and hears of registered modules, once and for good.

    PyTorch's profiler asks once which code object is `Module.__call__`, takes a frame that runs it for a
    module's call, and reads the local variable `self` there. So the replacement calls its argument `self` and
    stays for good: it only stops recording. It is the only frame of a call if no profiler can have asked
    before, that is, while torch is being imported; else the original runs below it and is found instead.
    """

    def __init__(self) -> None:
        self.follower: ModuleHooks | None = None
        original = torch.nn.Module.__call__
        is_first = getattr(torch.__spec__, "_initializing", False)
        torch.nn.Module.__call__ = self._replacement(original, is_first)
        # Compiled functions are guarded by PyTorch's hooks: one that came and went would compile them again.
        register_module_module_registration_hook(self._listener())

    def _listener(self) -> Callable[[Any, str, Any], None]:
        """Tells the follower of registrations; traced by Dynamo (`layers[:4]` makes a list) it is empty."""
        compiling = torch.compiler.is_dynamo_compiling
        entry = self

        def listener(parent: Any, name: str, child: Any) -> None:
            if not compiling() and entry.follower is not None:
                entry.follower.registered(parent, name, child)

        return disguised(listener, torch.nn.Module.register_module)

    def _replacement(self, original: Callable[..., Any], is_first: bool) -> Callable[..., Any]:
        compiling = torch.compiler.is_dynamo_compiling
        kind = int(RecordKind.MODULE_CALL)
        identity = unseen(id)
        entry = self

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return original(self, *args, **kwargs)
            is_plain = is_first and self._compiled_call_impl is None
            run = self._call_impl if is_plain else MethodType(original, self)
            hooks = entry.follower
            number = 0 if hooks is None else hooks.known(identity(self)) or hooks.define(self, args, kwargs)
            if hooks is None or number == 0:
                return run(*args, **kwargs)
            previous = hooks.set_module(number)
            if previous == number:  # a wrapper called what it wraps
                return run(*args, **kwargs)
            start_ns = hooks.now_ns()
            try:
                return run(*args, **kwargs)
            finally:
                hooks.record_range(0, start_ns, hooks.now_ns(), kind)
                hooks.set_module(previous)

        return disguised(call, original)


@functools.cache
def _entry() -> ModuleEntry:
    return ModuleEntry()


@dataclass(eq=False)
class ModuleHooks:
    """Numbers modules and records their calls.

    A global forward hook would cost 1.4 us a call and break `fullgraph=True`; a wrapped `Module.__call__`
    costs a fraction and disappears while Dynamo traces.
    """

    native: HostRecorder
    define_module: Callable[[str, str], int]
    name_tensors: Callable[[str, Any], None] | None = None
    tell_call: TellCall | None = None

    def __post_init__(self) -> None:
        native = self.native
        self._tree = ModuleTree()
        self._numbers: dict[int, int] = {}
        # What each call of a module calls: torch.profiler must show no row of it.
        self.known, self.define = unseen(self._numbers.get), unseen(self.first_call)
        self.set_module, self.now_ns = unseen(native.set_module), unseen(native.host_now_ns)
        self.record_range = unseen(native.record_range)
        self._references: dict[int, weakref.ref[Any]] = {}
        self._paths: dict[int, str] = {0: ""}
        self._classes: dict[int, str] = {0: ""}

    def install(self) -> Callable[[], None]:
        """Record calls of modules from now on; returns a function that ends it."""
        _entry().follower = self

        def uninstall() -> None:
            _entry().follower = None

        return uninstall

    def current(self) -> tuple[str, str]:
        """Path and class of what the calling thread is in: a module or an optimizer; empty outside of all."""
        number = self.native.set_module(0)
        self.native.set_module(number)
        return self._paths.get(number, ""), self._classes.get(number, "")

    def name(self, number: int, path: str, class_name: str) -> None:
        """Remember what a number stands for."""
        self._paths[number], self._classes[number] = path, class_name

    def path(self, module: Any) -> str:
        """A module's path; empty for what is not the user's."""
        return self._paths[self.number(module)]

    def number(self, module: Any) -> int:
        """A module's number; defined on first sight. 0 while a tracer runs a graph it has made."""
        return self._numbers.get(id(module)) or self._define(module)

    def first_call(self, module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> int:
        """The number of a module that is first called now; the call is told where no other is around it."""
        number = self.number(module)
        inside = self.native.set_module(0)
        self.native.set_module(inside)
        if number and not inside and self.tell_call is not None:
            self.tell_call(self._paths[number], unwrapped(module), arguments, keywords)
        return number

    def _define(self, module: Any) -> int:
        if isinstance(module, torch.fx.GraphModule) and torch._C._len_torch_dispatch_stack() > 0:
            return 0
        inner = unwrapped(module)
        number = self.number(inner) if inner is not module else self._define_path(module)
        key = id(module)
        self._numbers[key] = number
        self._references[key] = weakref.ref(module, lambda _: self._forget(key))
        return number

    def _define_path(self, module: Any) -> int:
        self._tree.scan(module)
        path = self._tree.path(module)
        number = self.define_module(path, type(module).__name__)
        self.native.name_module(number, path)
        self.name(number, path, type(module).__name__)
        if self.name_tensors is not None:
            self.name_tensors(path, module)
        return number

    def _forget(self, key: int) -> None:
        self._numbers.pop(key, None)
        self._references.pop(key, None)

    def registered(self, parent: Any, name: str, child: Any) -> None:
        """Learn that `child` became `parent`'s attribute `name`."""
        self._tree.link(parent, name, child)


_installed: ModuleHooks | None = None


def install(
    native: HostRecorder,
    define_module: Callable[[str, str], int],
    name_tensors: Callable[[str, Any], None] | None = None,
    tell_call: TellCall | None = None,
) -> Callable[[], None]:
    """Install the module hooks; returns a function that takes them out."""
    global _installed
    hooks = _installed = ModuleHooks(native, define_module, name_tensors, tell_call)
    remove = hooks.install()

    def uninstall() -> None:
        global _installed
        remove()
        _installed = None

    return uninstall


def current_path() -> str:
    """Path of the module that the calling thread is in; empty outside of all or without hooks."""
    return current_module()[0]


def current_module() -> tuple[str, str]:
    """Path and class of the module or optimizer that the calling thread is in; else empty."""
    return _installed.current() if _installed is not None else ("", "")


def name_module(number: int, path: str, class_name: str) -> None:
    """Tell what the number of something that is no module stands for: an optimizer."""
    if _installed is not None:
        _installed.name(number, path, class_name)


def module_path(module: Any) -> str:
    """A module's path; empty without hooks."""
    return _installed.path(module) if _installed is not None else ""
