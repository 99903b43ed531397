"""Writes once what the number of each stack that a sampler met stands for."""

from __future__ import annotations

import dis
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from types import CodeType

_NO_SPAN = (0, 0, 0, 0)


class StackTable:
    """Stacks by number, written to an open file as they appear.

    Most frames of a new stack were met in others: their texts are made once.

    Args:
        file: Where the lines go.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._frames: dict[tuple[int, int], str] = {}  # by the code's id: the sampler keeps the code

    def define(self, number: int, frames: Sequence[tuple[CodeType, int, int]]) -> None:
        """Write a stack.

        Args:
            number: What its samples call it.
            frames: Code, offset of the instruction in bytes and line of each frame, innermost first.
        """
        code, offset, _ = frames[0]
        texts = ",".join(self._text(*frame) for frame in frames)
        span, operation = list(_span(code, offset)), json.dumps(_operation(code, offset))
        line = f'{{"id":{number},"frames":[{texts}],"span":{span},"op":{operation}}}\n'
        with suppress(OSError):
            os.write(self._file, line.encode("ascii"))

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _text(self, code: CodeType, offset: int, line: int) -> str:
        """A frame as the file has it."""
        place = id(code), offset
        known = self._frames.get(place)
        if known is None:
            known = json.dumps((code.co_filename, max(line, 0), _function(code)))
            self._frames[place] = known
        return known


def _function(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _span(code: CodeType, offset: int) -> tuple[int, ...]:
    """First and last line and column of what a frame evaluates; zeros where Python does not say."""
    if not hasattr(code, "co_positions") or offset < 0:
        return _NO_SPAN
    span = next(islice(code.co_positions(), offset // 2, None), _NO_SPAN)
    return tuple(number or 0 for number in span)


def _operation(code: CodeType, offset: int) -> str:
    return dis.opname[code.co_code[offset]] if 0 <= offset < len(code.co_code) else ""
