"""The places in a kernel that calls come from, interned by the stack of bytecode positions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from neuron_tools.records.program import Frame

INTERNAL_MODULES: set[int] = set()
"""Ids of the globals of modules whose frames are not the kernel's."""
_getframe = sys._getframe


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the kernel: its frames, innermost first. Code objects are kept so that ids stay unique."""

    frames: tuple[Frame, ...]
    codes: tuple[CodeType, ...]


class CallSites:
    """The call sites of one run of a kernel.

    Attributes:
        sites: Numbers of call sites by their code objects' ids and bytecode positions.
        site_list: The call sites by number.
        site_override: The site every call is said to come from; -1: its own.
        stop_code: The code that called the kernel: frames from there on are not the kernel's.
    """

    def __init__(self) -> None:
        self.sites: dict[Any, int] = {}
        self.site_list: list[Site] = []
        self.site_override = -1
        self.stop_code: CodeType | None = None
        if not INTERNAL_MODULES:
            _note_internal_modules()

    def site(self) -> int:
        """Number of the kernel's current call site, with all its callers inside the kernel."""
        if self.site_override >= 0:
            return self.site_override
        frame: FrameType | None = _getframe(2)
        internal = INTERNAL_MODULES
        while frame is not None and id(frame.f_globals) in internal:
            if frame.f_code is self.stop_code:
                return -1
            frame = frame.f_back
        if frame is None:
            return -1
        inner = frame
        key: Any = (id(frame.f_code), frame.f_lasti)
        back = frame.f_back
        if back is None:
            return -1
        if back.f_code is not self.stop_code:
            chain = [*key]
            stop = self.stop_code
            while back is not None and back.f_code is not stop:
                if id(back.f_globals) not in internal:
                    chain.append(id(back.f_code))
                    chain.append(back.f_lasti)
                back = back.f_back
            if back is None:
                return -1
            key = tuple(chain)
        found = self.sites.get(key)
        if found is not None:
            return found
        if _is_internal(inner):
            INTERNAL_MODULES.add(id(inner.f_globals))
            return self.site()
        return self._new_site(key, inner)

    def _new_site(self, key: Any, inner: FrameType) -> int:
        frames: list[Frame] = []
        codes: list[CodeType] = []
        frame: FrameType | None = inner
        while frame is not None and frame.f_code is not self.stop_code:
            if id(frame.f_globals) not in INTERNAL_MODULES:
                code = frame.f_code
                name = getattr(code, "co_qualname", code.co_name)
                frames.append(Frame(code.co_filename, frame.f_lineno or 0, name))
                codes.append(code)
            frame = frame.f_back
        number = len(self.site_list)
        self.site_list.append(Site(tuple(frames), tuple(codes)))
        self.sites[key] = number
        return number

    def describe_site(self, site: int) -> str:
        """A call site as "file:line in function"."""
        if not 0 <= site < len(self.site_list) or not self.site_list[site].frames:
            return ""
        first, *callers = self.site_list[site].frames
        chain = ", ".join(f"{frame.file}:{frame.line} in {frame.function}" for frame in callers)
        here = f"{first.file}:{first.line} in {first.function}"
        return f"{here} (called from {chain})" if chain else here


def _is_internal(frame: FrameType) -> bool:
    """Whether a frame is of this package: modules that were imported after the first trace began."""
    return str(frame.f_globals.get("__name__", "")).startswith("neuron_tools.")


def _note_internal_modules() -> None:
    """Remember the modules of this package, whose frames are not the kernel's."""
    for name, module in list(sys.modules.items()):
        if name.startswith("neuron_tools.") or getattr(module, "__nki_names__", False):
            INTERNAL_MODULES.add(id(vars(module)))
