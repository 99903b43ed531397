"""Source stacks of the calling thread, numbered."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType

from neuron_tools.device.host.numbering import Numbering

MAX_FRAMES = 128
OnStack = Callable[[int, tuple[tuple[str, int, str], ...]], None]

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "")


class SourceStacks:
    """Gives each distinct stack of user frames a number; the same stack costs one look-up.

    Args:
        internal_folders: Files below these are a tool's, not the user's; ours are left out anyway.
        on_stack: Called once for each new stack: number, ((file, line, function), ...) innermost first.
    """

    def __init__(self, internal_folders: Iterable[str], on_stack: OnStack) -> None:
        folders = [os.path.join(os.path.abspath(folder), "") for folder in internal_folders]
        self._internal = (_PACKAGE, *folders)
        self._is_user: dict[CodeType, bool] = {}
        self._stacks: Numbering[tuple[object, ...]] = Numbering(
            lambda number, key: on_stack(number, tuple(_frames(key)))
        )

    def current(self) -> int:
        """Number of the calling thread's stack; 0 where it has no user frame."""
        key: list[object] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and len(key) < 2 * MAX_FRAMES:
            code = frame.f_code
            is_user = self._is_user.get(code)
            if is_user is None:
                is_user = self._learn(code)
            if is_user:
                key.append(code)
                key.append(frame.f_lasti)
            frame = frame.f_back
        return self._stacks.number(tuple(key)) if key else 0

    def _learn(self, code: CodeType) -> bool:
        name = code.co_filename
        is_user = not name.startswith(self._internal) and not name.startswith("<frozen")
        self._is_user[code] = is_user
        return is_user


def _frames(key: tuple[object, ...]) -> Iterable[tuple[str, int, str]]:
    for code, instruction in zip(key[::2], key[1::2]):
        assert isinstance(code, CodeType)
        assert isinstance(instruction, int)
        yield code.co_filename, _line(code, instruction), getattr(code, "co_qualname", code.co_name)


def _line(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno
