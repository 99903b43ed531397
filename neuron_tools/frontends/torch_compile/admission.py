"""Checks of PyTorch's that let only devices of a list pass."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from neuron_tools.late_import import after_import

_LISTED = "cuda"
"""On each such list."""


def admit(check: Callable[..., Any], device: str) -> None:
    """Add a device to the lists that a function, or one within it, compares types of devices with.

    Its code is changed, as Dynamo reads that: a wrapper would be an unknown function to it.

    Args:
        check: Has them as constants.
        device: Its type.
    """
    function: Any = check
    function.__code__ = _admitting(function.__code__, device)


def _admitting(code: CodeType, device: str) -> CodeType:
    return code.replace(co_consts=tuple(_listing(constant, device) for constant in code.co_consts))


def _listing(constant: Any, device: str) -> Any:
    if isinstance(constant, CodeType):
        return _admitting(constant, device)
    if isinstance(constant, tuple | frozenset) and _LISTED in constant and device not in constant:
        return type(constant)((*constant, device))
    return constant


def admit_pointwise_scans() -> None:
    """Let `associative_scan` take tensors on the device in its default mode, once it is imported."""

    def admit_scan() -> None:
        from torch._higher_order_ops import associative_scan

        admit(associative_scan, "neuron")

    after_import("torch._higher_order_ops", admit_scan)
