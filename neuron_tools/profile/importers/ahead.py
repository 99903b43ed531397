"""Makes the next item while the one before it is being used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
_END = object()


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, each made by another thread while the caller uses the one before it."""
    with ThreadPoolExecutor(1) as maker:
        upcoming = maker.submit(next, items, _END)
        while (item := upcoming.result()) is not _END:
            upcoming = maker.submit(next, items, _END)
            yield item  # type: ignore[misc]  # no _END here
