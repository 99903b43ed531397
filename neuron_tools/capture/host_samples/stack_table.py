"""Numbers the stacks that a sampler meets, and writes once what each number stands for."""

from __future__ import annotations

import dis
import json
import os
from contextlib import suppress
from itertools import islice
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
        self._frames: dict[tuple[int, int], str] = {}
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
        frames: list[str] = []
        caller: FrameType | None = frame
        while caller is not None and len(frames) < DEPTH:
            frames.append(self._frame(caller))
            caller = caller.f_back
        span, operation = list(_span(frame)), json.dumps(_operation(frame))
        line = f'{{"id":{number},"frames":[{",".join(frames)}],"span":{span},"op":{operation}}}\n'
        with suppress(OSError):
            os.write(self._file, line.encode("ascii"))
        self._numbers[key] = number
        return number

    def _frame(self, frame: FrameType) -> str:
        """A frame as the file has it; most frames of a new stack were met in others."""
        code = frame.f_code
        place = id(code), frame.f_lasti
        known = self._frames.get(place)
        if known is None:
            self._codes[id(code)] = code
            known = json.dumps((code.co_filename, frame.f_lineno or 0, _function(code)))
            self._frames[place] = known
        return known


def _function(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _span(frame: FrameType) -> tuple[int, ...]:
    """First and last line and column of what the frame evaluates; zeros where Python does not say."""
    if not hasattr(frame.f_code, "co_positions") or frame.f_lasti < 0:
        return _NO_SPAN
    span = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), _NO_SPAN)
    return tuple(number or 0 for number in span)


def _operation(frame: FrameType) -> str:
    code = frame.f_code.co_code
    return dis.opname[code[frame.f_lasti]] if 0 <= frame.f_lasti < len(code) else ""
