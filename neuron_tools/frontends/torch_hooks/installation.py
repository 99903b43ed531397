"""All hooks into PyTorch, put in by the capture session and taken out again; nothing is patched otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_tools.frontends.torch_compile import default_backend
from neuron_tools.frontends.torch_hooks import continuous_batching, modules, ranges
from neuron_tools.frontends.torch_hooks.recorder import HostRecorder


def install(
    native: HostRecorder,
    define_module: Callable[[str, str], int],
    name_tensors: Callable[[str, Any], None] | None = None,
    tell_call: modules.TellCall | None = None,
) -> Callable[[], None]:
    """Install all hooks.

    Args:
        native: The device's recorder (`neuron_tools.device.native`).
        define_module: Called once per module with its path and class name; returns its number, from 1.
        name_tensors: Called with each module's path and the module, when it is first called.
        tell_call: Called with the first call of each module that no other module calls.

    Returns:
        A function that takes the hooks out again.
    """
    recorder = _without_wrappers(native)
    removals = [
        modules.install(recorder, define_module, name_tensors, tell_call),
        ranges.install(recorder, define_module),
        default_backend.install(),
        continuous_batching.install(),
    ]

    def uninstall() -> None:
        while removals:
            removals.pop()()

    return uninstall


def _without_wrappers(native: HostRecorder) -> HostRecorder:
    """The C functions themselves, where there are some: a Python call around each would double their cost."""
    core: Callable[[], HostRecorder] | None = getattr(native, "core", None)
    return core() if core is not None else native
