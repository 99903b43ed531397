"""Neuron Tools: profile, monitor and explore AWS Neuron programs, with or without the chip."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neuron_tools import profile as profile

if TYPE_CHECKING:
    from neuron_tools.profile.reader import open_profile as open_profile

_MODULE_OF = {"open_profile": "neuron_tools.profile.reader"}

__all__ = ["open_profile", "profile"]


class _CallablePackage(ModuleType):
    """`neuron_tools.profile` is the package of profiles and, called, records one."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return import_module("neuron_tools.capture.inline").profile(*arguments, **options)


profile.__class__ = _CallablePackage


def __getattr__(name: str) -> Any:
    """Import what the package offers when it is first used: the import itself stays light."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
