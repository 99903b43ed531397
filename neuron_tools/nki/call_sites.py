"""The places in a kernel that calls come from, interned by the stack of bytecode positions."""

from __future__ import annotations

import inspect
import sys
from types import CodeType, FrameType

from neuron_tools.frozen import frozen
from neuron_tools.records.program import Frame

INTERNAL_MODULES: set[int] = set()
"""Ids of the globals of modules whose frames are not the kernel's."""
_getframe = sys._getframe
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Of functions whose frames are called several times, each time perhaps from elsewhere."""
_OUTSIDE, _START = -1, -2
"""What stands for frames outside any kernel, and for what calls the kernel's own function."""


@frozen
class Site:
    """A place in the kernel: its frames, innermost first."""

    frames: tuple[Frame, ...]


class CallSites:
    """The call sites of one run of a kernel.

    While a function runs, what called it stays the same: frames under way are held with a number that stands
    for them and their callers, so that a call in the same frame as the one before it looks up two integers.

    Attributes:
        sites: Numbers of call sites by the number of their frame and the position in its bytecode.
        site_list: The call sites by number.
        site_override: The site every call is said to come from; -1: its own.
        stop_code: The code that called the kernel: frames from there on are not the kernel's.
        frame: The kernel's frame that was looked up last.
        context: What stands for that frame and its callers.
    """

    def __init__(self) -> None:
        self.sites: dict[tuple[int, int], int] = {}
        self.site_list: list[Site] = []
        self.site_override = -1
        self.stop_code: CodeType | None = None
        self.frame: FrameType | None = None
        self.context = _OUTSIDE
        self._held: dict[FrameType, int] = {}
        self._contexts: dict[tuple[int, int, int], int] = {}
        self._codes: list[CodeType] = []
        if not INTERNAL_MODULES:
            _note_internal_modules()

    def site(self) -> int:
        """Number of the kernel's current call site, with all its callers inside the kernel."""
        if self.site_override >= 0:
            return self.site_override
        frame: FrameType | None = _getframe(2)
        while frame is not None and id(frame.f_globals) in INTERNAL_MODULES:
            if frame.f_code is self.stop_code:
                return -1
            frame = frame.f_back
        return -1 if frame is None else self.site_in(frame)

    def site_in(self, frame: FrameType) -> int:
        """Number of the call site where a frame of the kernel stands.

        Args:
            frame: Of a function of the kernel, under way.
        """
        context = self.context if frame is self.frame else self._enter(frame)
        if context < 0:
            outer = frame.f_back
            return -1 if context == _OUTSIDE or outer is None else self.site_in(outer)
        key = (context, frame.f_lasti)
        found = self.sites.get(key)
        return self._new_site(key, frame) if found is None else found

    def leave(self) -> None:
        """Let go of the frames: the kernel has ended."""
        self.frame, self.context = None, _OUTSIDE
        self._held.clear()

    def _enter(self, frame: FrameType) -> int:
        """What stands for a frame and its callers; it is held from now on, frames that have ended are not.

        Returns:
            Its number; below 0 where it is of this package, _OUTSIDE where the kernel did not call it.
        """
        held = self._held
        context = held.get(frame)
        if context is not None:
            while next(reversed(held)) is not frame:
                held.popitem()
        else:
            context = self._called(frame)
            if context == _OUTSIDE or frame.f_code.co_flags & _SUSPENDED:
                return context
            held[frame] = context
        self.frame, self.context = frame, context
        return context

    def _called(self, frame: FrameType) -> int:
        """What stands for a frame that is not held: its code, and what called it from where."""
        outer = frame.f_back
        if outer is None:
            return _OUTSIDE
        if outer.f_code is self.stop_code:
            around, position = _START, 0
            self._held.clear()
        else:
            around = self._enter(outer)
            if around == _OUTSIDE:
                return _OUTSIDE
            position = outer.f_lasti if around >= 0 else 0
        key = (around, position, id(frame.f_code))
        known = self._contexts.get(key)
        return self._new_context(key, frame) if known is None else known

    def _new_context(self, key: tuple[int, int, int], frame: FrameType) -> int:
        if is_internal(frame):
            INTERNAL_MODULES.add(id(frame.f_globals))
        is_kernels = id(frame.f_globals) not in INTERNAL_MODULES
        number = self._contexts[key] = len(self._codes) if is_kernels else _START - 1 - len(self._codes)
        self._codes.append(frame.f_code)
        return number

    def _new_site(self, key: tuple[int, int], inner: FrameType) -> int:
        frames: list[Frame] = []
        frame: FrameType | None = inner
        while frame is not None and frame.f_code is not self.stop_code:
            if id(frame.f_globals) not in INTERNAL_MODULES:
                code = frame.f_code
                name = getattr(code, "co_qualname", code.co_name)
                frames.append(Frame(code.co_filename, frame.f_lineno or 0, name))
            frame = frame.f_back
        number = len(self.site_list)
        self.site_list.append(Site(tuple(frames)))
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


def is_internal(frame: FrameType) -> bool:
    """Whether a frame is of this package: modules that were imported after the first trace began."""
    return str(frame.f_globals.get("__name__", "")).startswith("neuron_tools.")


def _note_internal_modules() -> None:
    """Remember the modules of this package, whose frames are not the kernel's."""
    for name, module in list(sys.modules.items()):
        if name.startswith("neuron_tools.") or getattr(module, "__nki_names__", False):
            INTERNAL_MODULES.add(id(vars(module)))
