"""Parts of reports that are made anew only when what they are made of changed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import orjson

Content = dict[str, Any]
Key = tuple[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """Equal only to a token of the very same object."""

    what: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.what is self.what

    def __hash__(self) -> int:
        return id(self.what)


# Stands for a period in a template: a character that JSON text never holds.
PERIOD = orjson.Fragment(b"\0")


@dataclass(frozen=True, slots=True)
class Template:
    """JSON text of a part, cut where its periods go."""

    pieces: list[bytes]

    def fill(self, periods: list[float]) -> orjson.Fragment:
        """The text with these periods, in their order."""
        parts = [self.pieces[0]]
        for piece, period in zip(self.pieces[1:], periods):
            parts += (b"%r" % period, piece)
        return orjson.Fragment(b"".join(parts))


class Memo:
    """The last content of each part; a key is a pid, or 0 for the host, and the part's name."""

    def __init__(self) -> None:
        self._parts: dict[Key, tuple[Any, Content]] = {}
        self._templates: dict[Key, tuple[Any, Template]] = {}

    def get(self, key: Key, token: Any, make: Callable[[], Content]) -> Content:
        """The last content if the token is equal to the last one, else newly made; values are JSON text."""
        known = self._parts.get(key)
        if known is not None and known[0] == token:
            return known[1]
        content = {name: orjson.Fragment(orjson.dumps(value)) for name, value in make().items()}
        self._parts[key] = token, content
        return content

    def template(self, key: Key, token: Any, make: Callable[[], Content]) -> Template:
        """The last template if the token is equal to the last one, else made of a part with `PERIOD`s."""
        known = self._templates.get(key)
        if known is not None and known[0] == token:
            return known[1]
        made = Template(orjson.dumps(make()).split(b"\0"))
        self._templates[key] = token, made
        return made

    def last(self, key: Key) -> Content | None:
        """The last content, None where there was none."""
        known = self._parts.get(key)
        return None if known is None else known[1]

    def forget(self, pids: Collection[int]) -> None:
        """Forget the parts of all processes but these."""
        for parts in (self._parts, self._templates):
            for key in [key for key in parts if key[0] and key[0] not in pids]:
                del parts[key]
