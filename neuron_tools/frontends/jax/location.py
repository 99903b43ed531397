"""Source locations of MLIR operations that JAX lowered: the operation's path and its Python frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from neuron_tools.frozen import frozen
from neuron_tools.records.program import Frame

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_POSITION = re.compile(r":(\d+):\d+(?: to (?:\d+)?:\d+)?")
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")
_ATTRIBUTE = re.compile(r"<[^>]*>")
_SEPARATOR = "/"
_INNER_MAIN = "/jit(main)/"  # older versions of JAX name their entry function below the user's


@frozen
class SourceLocation:
    """Where an operation came from.

    Attributes:
        path: Names from the program down to the operation, as JAX writes them:
            "jit(step)/transpose(jvp(mlp))/dot_general".
        frames: Python frames, innermost first.
    """

    path: str = ""
    frames: tuple[Frame, ...] = ()

    def below(self, caller: SourceLocation) -> SourceLocation:
        """This location seen from the outermost program, when `caller` calls the function it is in."""
        path = _SEPARATOR.join(part for part in (caller.path, self.path) if part)
        return SourceLocation(path, _joined(self.frames, caller.frames))


def nested(locations: Sequence[SourceLocation]) -> SourceLocation:
    """The location of an operation inside calls, given from the outermost call to the operation itself."""
    whole = SourceLocation()
    for location in locations:
        whole = location.below(whole)
    return whole


@lru_cache(maxsize=65536)
def parse(text: str) -> SourceLocation:
    """Read MLIR's printed form, e.g. `loc("jit(f)/sin"("f"("a.py":3:4 to :9)))`; () where it is not one."""
    return _Parser(text.strip().removeprefix("loc(").removesuffix(")")).location()


class _Parser:
    """Recursive descent over the location grammar of MLIR's assembly format."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def location(self) -> SourceLocation:
        if self._take("callsite("):
            callee = self.location()
            self._take(" at ")
            caller = self.location()
            self._take(")")
            return callee.below(caller)
        if self._take("fused"):
            return self._fused()
        quoted = _STRING.match(self._text, self._at)
        if quoted is None:
            return SourceLocation()
        self._at = quoted.end()
        return self._named(_unescaped(quoted[1]))

    def _named(self, name: str) -> SourceLocation:
        """A file position, a frame (a function's name around one), or a name around anything else."""
        position = _POSITION.match(self._text, self._at)
        if position:
            self._at = position.end()
            return SourceLocation(frames=(Frame(name, int(position[1])),))
        if not self._take("("):
            return SourceLocation(name)
        is_frame = self._is_position()
        inner = self.location()
        self._take(")")
        if is_frame and _SEPARATOR not in name and "(" not in name:
            frame = inner.frames[0]
            return SourceLocation(frames=(Frame(frame.file, frame.line, name),))
        return SourceLocation(name.replace(_INNER_MAIN, _SEPARATOR, 1), inner.frames)

    def _is_position(self) -> bool:
        quoted = _STRING.match(self._text, self._at)
        return quoted is not None and _POSITION.match(self._text, quoted.end()) is not None

    def _fused(self) -> SourceLocation:
        attribute = _ATTRIBUTE.match(self._text, self._at)
        if attribute:
            self._at = attribute.end()
        self._take("[")
        parts = [self.location()]
        while self._take(", "):
            parts.append(self.location())
        self._take("]")
        path = next((part.path for part in parts if part.path), "")
        return SourceLocation(path, next((part.frames for part in parts if part.frames), ()))

    def _take(self, token: str) -> bool:
        found = self._text.startswith(token, self._at)
        if found or token.startswith("unknown"):
            self._at += len(token)
        return found


def _joined(inner: tuple[Frame, ...], outer: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Inner frames above outer ones; JAX repeats the caller's frame where it traced the callee."""
    if inner and outer and inner[-1] == outer[0]:
        return (*inner, *outer[1:])
    return (*inner, *outer)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text.replace('\\"', '"').replace("\\\\", "\\"))
