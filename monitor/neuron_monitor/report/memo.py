"""Parts of the host's groups that are made anew only when what they are made of changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

Content = dict[str, Any]


class Memo:
    """The last content of each part, by the part's name."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[Any, Content]] = {}

    def get(self, key: str, token: Any, make: Callable[[], Content]) -> Content:
        """The last content if the token is equal to the last one, else newly made; values are JSON text."""
        known = self._parts.get(key)
        if known is not None and known[0] == token:
            return known[1]
        content = {name: orjson.Fragment(orjson.dumps(value)) for name, value in make().items()}
        self._parts[key] = token, content
        return content

    def last(self, key: str) -> Content | None:
        """The last content, None where there was none."""
        known = self._parts.get(key)
        return None if known is None else known[1]
