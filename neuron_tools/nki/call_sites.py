"""The places in a kernel that calls come from, interned by the stack of bytecode positions.

Which lines these are is found out for a message or a profile alone: a call that is right needs none.
"""

from __future__ import annotations

import inspect
import sys
from bisect import bisect_right
from types import CodeType, FrameType

from neuron_tools.records.program import Frame

INTERNAL_MODULES: set[int] = set()
"""Ids of the globals of modules whose frames are not the kernel's."""
_getframe = sys._getframe
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Of functions whose frames are called several times, each time perhaps from elsewhere."""


class _Context:
    """A function as it was called from one place.

    Attributes:
        code: Its code, kept so that no other takes its id.
        is_kernels: Whether it is the kernel's, not this package's.
        caller: The function that called it; None for the kernel's own caller.
        called_at: Where in the caller's bytecode, if the caller is the kernel's.
        sites: Numbers of the call sites in it by the position in its bytecode.
        callees: What it calls, by the position in its bytecode and the id of the code.
    """

    __slots__ = ("called_at", "callees", "caller", "code", "is_kernels", "sites")

    def __init__(
        self, code: CodeType | None, is_kernels: bool, caller: _Context | None = None, called_at: int = 0
    ) -> None:
        self.code = code
        self.is_kernels = is_kernels
        self.caller, self.called_at = caller, called_at
        self.sites: dict[int, int] = {}
        self.callees: dict[tuple[int, int], _Context] = {}


class CallSites:
    """The call sites of one run of a kernel.

    While a function runs, what called it stays the same: its frame is held with a context that stands for it
    and its callers, so that a call in the same frame as the one before it looks up one integer.

    Attributes:
        site_override: The site every call is said to come from; -1: its own.
        stop_code: The code that called the kernel: frames from there on are not the kernel's.
        frame: The kernel's frame that was looked up last.
        sites: Numbers of the call sites in it by the position in its bytecode.
    """

    def __init__(self) -> None:
        self.site_override = -1
        self.stop_code: CodeType | None = None
        self.frame: FrameType | None = None
        self.sites: dict[int, int] = {}
        self._start = self._context = _Context(None, is_kernels=False)
        self._places: list[tuple[_Context, int]] = []  # by number: function and position in its bytecode
        self._lines: dict[int, tuple[list[int], list[int]]] = {}
        self._frames: list[FrameType] = []  # under way, the innermost last; some have ended
        self._contexts: list[_Context] = []
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
        context = self._context if frame is self.frame else self._enter(frame)
        if context is None or not context.is_kernels:
            outer = frame.f_back
            return -1 if context is None or outer is None else self.site_in(outer)
        position = frame.f_lasti
        found = context.sites.get(position)
        if found is None:
            found = context.sites[position] = len(self._places)
            self._places.append((context, position))
        return found

    def leave(self) -> None:
        """Let go of the frames: the kernel has ended."""
        self.frame, self.sites = None, {}
        self._frames.clear()
        self._contexts.clear()

    def _enter(self, frame: FrameType) -> _Context | None:
        """What stands for a frame and its callers; it is held from now on, frames that have ended are not.

        Returns:
            None where the kernel did not call it.
        """
        frames, contexts, outer = self._frames, self._contexts, frame.f_back
        context: _Context | None
        at = len(frames)
        while at:
            at -= 1
            held = frames[at]
            if held is frame or held is outer:
                del frames[at + 1 :], contexts[at + 1 :]
                context = contexts[at]
                if held is outer:
                    context = self._callee(context, held, frame)
                break
        else:
            context = self._called(frame, outer)
        if context is None or frame.f_code.co_flags & _SUSPENDED:
            return context
        if not frames or frames[-1] is not frame:
            frames.append(frame)
            contexts.append(context)
        if context.is_kernels:
            self.frame, self.sites, self._context = frame, context.sites, context
        return context

    def _called(self, frame: FrameType, outer: FrameType | None) -> _Context | None:
        """What stands for a frame whose caller is not held."""
        if outer is None:
            return None
        if outer.f_code is self.stop_code:
            self._frames.clear()
            self._contexts.clear()
            return self._callee(self._start, None, frame)
        around = self._enter(outer)
        return None if around is None else self._callee(around, outer, frame)

    def _callee(self, around: _Context, outer: FrameType | None, frame: FrameType) -> _Context:
        """What stands for a function that another one calls from where it stands."""
        code = frame.f_code
        called_at = outer.f_lasti if outer is not None and around.is_kernels else 0
        key = (called_at, id(code))
        known = around.callees.get(key)
        if known is None:
            if is_internal(frame):
                INTERNAL_MODULES.add(id(frame.f_globals))
            is_kernels = id(frame.f_globals) not in INTERNAL_MODULES
            known = around.callees[key] = _Context(code, is_kernels, around, called_at)
        return known

    @property
    def stacks(self) -> tuple[tuple[Frame, ...], ...]:
        """The kernel's frames of each call site, innermost first."""
        return tuple(map(self.frames_of, range(len(self._places))))

    def frames_of(self, site: int) -> tuple[Frame, ...]:
        """The kernel's frames of one call site, innermost first."""
        frames: list[Frame] = []
        context, position = self._places[site]
        while (code := context.code) is not None and context.caller is not None:
            if context.is_kernels:
                name = getattr(code, "co_qualname", code.co_name)
                frames.append(Frame(code.co_filename, self._line(code, position), name))
            position, context = context.called_at, context.caller
        return tuple(frames)

    def _line(self, code: CodeType, position: int) -> int:
        """Line of a position in a function's bytecode; 0 where it has none."""
        table = self._lines.get(id(code))
        if table is None:
            spans = list(code.co_lines())
            table = [start for start, _, _ in spans], [line or 0 for _, _, line in spans]
            self._lines[id(code)] = table
        starts, lines = table
        return lines[bisect_right(starts, position) - 1]

    def describe_site(self, site: int) -> str:
        """A call site as "file:line in function"."""
        frames = self.frames_of(site) if 0 <= site < len(self._places) else ()
        if not frames:
            return ""
        first, *callers = frames
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
