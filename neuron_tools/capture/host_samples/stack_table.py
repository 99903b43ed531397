"""Numbers the stacks that a sampler meets, and writes once what each number stands for."""

from __future__ import annotations

import dis
import json
import os
from contextlib import suppress
from types import CodeType, FrameType

DEPTH = 160
_NO_SPAN = (0, 0, 0, 0)


class StackTable:
    """Stacks by number, written to an open file as they appear.

    A stack is known by its code objects and how far each has come: lines and names, which take longer to
    find, are looked up once.

    Args:
        file: Where the lines go.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._numbers: dict[tuple[int, ...], int] = {}
        self._codes: dict[int, CodeType] = {}  # keeps them: their ids stay theirs

    def number(self, frame: FrameType) -> int:
        """The number of the stack whose innermost frame this is."""
        key: list[int] = []
        caller: FrameType | None = frame
        while caller is not None and len(key) < 2 * DEPTH:
            key += (id(caller.f_code), caller.f_lasti)
            caller = caller.f_back
        found = self._numbers.get(tuple(key))
        return found if found is not None else self._define(tuple(key), frame)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _define(self, key: tuple[int, ...], frame: FrameType) -> int:
        number = len(self._numbers) + 1
        frames: list[tuple[str, int, str]] = []
        caller: FrameType | None = frame
        while caller is not None and len(frames) < DEPTH:
            code = caller.f_code
            self._codes[id(code)] = code
            frames.append((code.co_filename, caller.f_lineno or 0, _function(code)))
            caller = caller.f_back
        line = {"id": number, "frames": frames, "span": _span(frame), "op": _operation(frame)}
        with suppress(OSError):
            os.write(self._file, (json.dumps(line, separators=(",", ":")) + "\n").encode("ascii"))
        self._numbers[key] = number
        return number


def _function(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _span(frame: FrameType) -> tuple[int, ...]:
    """First and last line and column of what the frame evaluates; zeros where Python does not say."""
    if not hasattr(frame.f_code, "co_positions") or frame.f_lasti < 0:
        return _NO_SPAN
    for place, span in enumerate(frame.f_code.co_positions()):
        if 2 * place == frame.f_lasti:
            return tuple(number or 0 for number in span)
    return _NO_SPAN


def _operation(frame: FrameType) -> str:
    code = frame.f_code.co_code
    return dis.opname[code[frame.f_lasti]] if 0 <= frame.f_lasti < len(code) else ""
