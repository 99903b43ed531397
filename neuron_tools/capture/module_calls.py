"""Tells a capture's log how modules were called: what simulating them again after an edit takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuron_tools.device import native

MOST_CALLS = 64
"""Told of one process: a program may make a module for each call."""


class ModuleCalls:
    """Tells the first call of each module that no other module calls.

    Args:
        define: Takes the module's path and the call as text.
    """

    def __init__(self, define: Callable[[str, str], None]) -> None:
        self._define = define
        self._left = MOST_CALLS

    def tell(self, path: str, module: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Tell a call, if it can be made again; no host time passes meanwhile."""
        if not self._left:
            return
        self._left -= 1
        with native.paused_clock():
            from neuron_tools.frontends.torch_hooks.module_text import describe_call

            text = describe_call(module, arguments, keywords)
        if text is not None:
            self._define(path, text)
