"""A file to read whose content is memory that somebody has already."""

from __future__ import annotations

import io
from typing import Any


class ViewReader(io.RawIOBase):
    """Reads bytes where they are; `io.BytesIO` would copy a view of them first.

    Args:
        data: The content.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        super().__init__()
        self._data = memoryview(data)
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the begin, the position or the end.

        Raises:
            ValueError: That lies before the begin.
        """
        position = (0, self._position, len(self._data))[whence] + offset
        if position < 0:
            raise ValueError(f"negative position {position}")
        self._position = position
        return position

    def tell(self) -> int:
        """The position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the position on, as far as the content goes; returns how far."""
        found = self._data[self._position : self._position + len(buffer)]
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)
