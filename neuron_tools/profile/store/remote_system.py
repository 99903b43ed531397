"""A profile behind a URL as a file system, for the database that queries it; needs fsspec."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from fsspec.spec import AbstractFileSystem

from neuron_tools.profile.store.layout import PROTOCOL

_LONG_AGO = datetime(2000, 1, 1, tzinfo=timezone.utc)


class LazyFile(Protocol):
    """A file of which blocks are fetched when they are first read."""

    size: int

    def open(self) -> BinaryIO:
        """The file for reading."""


class LazyFolder(Protocol):
    """A folder of such files."""

    directory: Path

    def file(self, path: Path) -> LazyFile | None:
        """The file behind a path in the folder."""


class FolderSystem(AbstractFileSystem):
    """The lazily fetched files of one folder: nothing else can be reached through it."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, folder: LazyFolder) -> None:
        super().__init__()
        self._folder = folder

    def open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
        """A file for reading.

        Raises:
            FileNotFoundError: The folder has no such file.
            PermissionError: Something else than reading is wanted.
        """
        if mode not in ("r", "rb"):
            raise PermissionError(f"{path} can be read only.")
        return self._file(path).open()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name and size of a file."""
        return {"name": path, "size": self._file(path).size, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        """Whether the folder has the file."""
        try:
            self._file(path)
        except FileNotFoundError:
            return False
        return True

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file itself: patterns are not needed."""
        return [path] if self.exists(path) else []

    def modified(self, path: str) -> datetime:
        """Long ago: profiles do not change while they are open."""
        return _LONG_AGO

    def _file(self, path: str) -> LazyFile:
        name = path.removeprefix(f"{PROTOCOL}://")
        file = self._folder.file(self._folder.directory / name)
        if file is None:
            raise FileNotFoundError(path)
        return file
