"""Keeps the device's current module while an nn.Module is being called, and records each call as a range."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook

from neuron_tools.frontends.torch_hooks.disguise import disguised
from neuron_tools.frontends.torch_hooks.module_tree import ModuleTree, unwrapped
from neuron_tools.frontends.torch_hooks.recorder import HostRecorder
from neuron_tools.records.capture_log import RecordKind


class ModuleHooks:
    """Numbers modules and wraps their calls.

    A global forward hook would cost 1.4 us a call and break `fullgraph=True`; a wrapped `Module.__call__`
    costs a fraction and disappears while Dynamo traces.
    """

    def __init__(
        self,
        native: HostRecorder,
        define_module: Callable[[str, str], int],
        name_tensors: Callable[[str, Any], None] | None = None,
    ) -> None:
        self._native = native
        self._define_module = define_module
        self._name_tensors = name_tensors
        self._tree = ModuleTree()
        self._numbers: dict[int, int] = {}
        self._references: dict[int, weakref.ref[Any]] = {}
        self._paths: dict[int, str] = {0: ""}

    def install(self) -> Callable[[], None]:
        """Wrap `torch.nn.Module.__call__`; returns a function that restores it."""
        registration = register_module_module_registration_hook(self._registered)
        original = torch.nn.Module.__call__
        torch.nn.Module.__call__ = self._wrap(original)

        def uninstall() -> None:
            torch.nn.Module.__call__ = original
            registration.remove()

        return uninstall

    def current_path(self) -> str:
        """Path of the module that the calling thread is in; empty outside of all."""
        number = self._native.set_module(0)
        self._native.set_module(number)
        return self._paths.get(number, "")

    def path(self, module: Any) -> str:
        """A module's path; empty for what is not the user's."""
        return self._paths[self.number(module)]

    def number(self, module: Any) -> int:
        """A module's number; defined on first sight. 0 while a tracer runs a graph it has made."""
        return self._numbers.get(id(module)) or self._define(module)

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
        number = self._define_module(path, type(module).__name__)
        self._native.name_module(number, path)
        self._paths[number] = path
        if self._name_tensors is not None:
            self._name_tensors(path, module)
        return number

    def _forget(self, key: int) -> None:
        self._numbers.pop(key, None)
        self._references.pop(key, None)

    def _registered(self, parent: Any, name: str, child: Any) -> None:
        self._tree.link(parent, name, child)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        numbers, define = self._numbers, self._define
        set_module, now, record = self._native.set_module, self._native.host_now_ns, self._native.record_range
        compiling = torch.compiler.is_dynamo_compiling
        kind = int(RecordKind.MODULE_CALL)

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return original(module, *args, **kwargs)
            number = numbers.get(id(module)) or define(module)
            if number == 0:
                return original(module, *args, **kwargs)
            previous = set_module(number)
            if previous == number:  # a wrapper called what it wraps
                return original(module, *args, **kwargs)
            start_ns = now()
            try:
                return original(module, *args, **kwargs)
            finally:
                record(0, start_ns, now(), kind)
                set_module(previous)

        return disguised(call, original)


_installed: ModuleHooks | None = None


def install(
    native: HostRecorder,
    define_module: Callable[[str, str], int],
    name_tensors: Callable[[str, Any], None] | None = None,
) -> Callable[[], None]:
    """Install the module hooks; returns a function that takes them out."""
    global _installed
    hooks = _installed = ModuleHooks(native, define_module, name_tensors)
    remove = hooks.install()

    def uninstall() -> None:
        global _installed
        remove()
        _installed = None

    return uninstall


def current_path() -> str:
    """Path of the module that the calling thread is in; empty outside of all or without hooks."""
    return _installed.current_path() if _installed is not None else ""


def module_path(module: Any) -> str:
    """A module's path; empty without hooks."""
    return _installed.path(module) if _installed is not None else ""
