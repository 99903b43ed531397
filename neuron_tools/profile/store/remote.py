"""Profiles behind URLs, read as far as they are looked at.

Works with every file system of fsspec: `s3://bucket/run.nprof`, `gs://`, `https://`, `memory://`, ... A
temporary folder stands for the profile. Small files are copied into it; the parts of tables and the timeline
index are files of the right size with holes, into which those blocks are fetched that somebody reads. So a
query fetches the column chunks and row groups that it needs, a drawing the windows that it shows.

fsspec's own cache of blocks in a file takes a block for fetched before it is, also where that fails, and is
not made for several threads: it would give zeros for what a broken connection did not bring.
"""

from __future__ import annotations

import io
import os
import tempfile
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from neuron_tools.profile.store.layout import PROTOCOL, NotAProfileError

BLOCK_BYTES = 1 << 16
_LAZY_SUFFIXES = (".parquet", ".bin")
_OPEN: dict[Path, RemoteFolder] = {}


def is_url(path: str | Path) -> bool:
    """Whether a path names something behind a protocol, like `s3://bucket/run.nprof`."""
    return isinstance(path, str) and "://" in path


def remote_folder(directory: Path) -> RemoteFolder | None:
    """The profile behind a URL for which a folder stands; None for a folder of its own."""
    return _OPEN.get(directory)


def source_of(path: Path) -> Path | BinaryIO:
    """What to read a part from: its path, or a file that fetches what is read."""
    file = _remote_file(path)
    return path if file is None else file.open()


def fetcher_of(path: Path) -> Callable[[int, int], None] | None:
    """Fetches bytes, from one to before another, before they are looked at; None if all are there."""
    file = _remote_file(path)
    return None if file is None else file.fetch


def _remote_file(path: Path) -> RemoteFile | None:
    if not _OPEN:
        return None
    folder = next((_OPEN[parent] for parent in path.parents if parent in _OPEN), None)
    return None if folder is None else folder.file(path)


class RemoteFolder:
    """A profile behind a URL. Close it when it is no longer read.

    Args:
        url: The profile's folder.

    Attributes:
        directory: The folder that stands for it.

    Raises:
        NotAProfileError: fsspec or the protocol's package is not installed, or nothing can be read there.
    """

    def __init__(self, url: str) -> None:
        self.system, root = _file_system(url)
        self._temporary = tempfile.TemporaryDirectory(prefix="neuron-tools-")
        self.directory = Path(self._temporary.name).resolve() / _name(root)
        self.directory.mkdir()
        self._files: dict[Path, RemoteFile] = {}
        try:
            self._list(root.rstrip("/") + "/")
        except Exception as error:  # each file system has errors of its own
            self.close()
            raise NotAProfileError(f"{url} cannot be read ({error}): check the address.") from error
        if not any(self.directory.iterdir()):
            self.close()
            raise NotAProfileError(f"{url} does not exist, or is empty: name the folder of a profile.")
        _OPEN[self.directory] = self

    def close(self) -> None:
        """Remove the folder."""
        _OPEN.pop(self.directory, None)
        self._temporary.cleanup()

    @property
    def fetched_bytes(self) -> int:
        """How much of the parts and the index was fetched until now."""
        return sum(file.fetched_bytes for file in self._files.values())

    def file(self, path: Path) -> RemoteFile | None:
        """The file behind a path in the folder; None where another file stands there by now."""
        file = self._files.get(path)
        return file if file is not None and file.stands_at(path) else None

    def url(self, path: Path) -> str:
        """What a database calls a file of the folder (see `file_system`)."""
        return f"{PROTOCOL}://{path.relative_to(self.directory).as_posix()}"

    def file_system(self) -> Any:
        """The folder's files alone, as a file system of fsspec."""
        from neuron_tools.profile.store.remote_system import FolderSystem

        return FolderSystem(self)

    def _list(self, root: str) -> None:
        for found in self.system.find(root.rstrip("/")):
            name = str(found)[len(root) :]
            if not str(found).startswith(root) or not _is_inside(name):
                continue
            place = self.directory / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.suffix in _LAZY_SUFFIXES:
                self._files[place] = RemoteFile(self.system, str(found), place)
            else:
                self.system.get_file(found, str(place))


class RemoteFile:
    """A file of which blocks are fetched when they are first read.

    Args:
        system: Its file system.
        remote: Its name there.
        place: Where the local file with holes is made.
    """

    def __init__(self, system: Any, remote: str, place: Path) -> None:
        self.size = int(system.info(remote)["size"])
        self._system, self._remote, self._place = system, remote, place
        self._has = np.zeros(-(-self.size // BLOCK_BYTES), np.bool_)
        self._lock = threading.Lock()
        with place.open("wb") as file:
            file.truncate(self.size)
        self._inode = place.stat().st_ino

    @property
    def fetched_bytes(self) -> int:
        """How much was fetched until now, in whole blocks."""
        return int(np.count_nonzero(self._has)) * BLOCK_BYTES

    def stands_at(self, path: Path) -> bool:
        """Whether the file with holes still stands there."""
        try:
            return path.stat().st_ino == self._inode
        except OSError:
            return False

    def open(self) -> BinaryIO:
        """The file for reading, with a position of its own in each thread."""
        return cast(BinaryIO, _RemoteReader(self, self._place))

    def fetch(self, begin: int, end: int) -> None:
        """Fetch what is missing of a range of bytes.

        Raises:
            OSError: It cannot be fetched.
        """
        first, last = begin // BLOCK_BYTES, -(-min(end, self.size) // BLOCK_BYTES)
        if self._has[first:last].all():
            return
        with self._lock:
            missing = np.flatnonzero(~self._has[first:last]) + first
            for run in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1):
                if len(run):
                    self._fetch_blocks(int(run[0]), int(run[-1]) + 1)

    def _fetch_blocks(self, first: int, last: int) -> None:
        begin, end = first * BLOCK_BYTES, min(last * BLOCK_BYTES, self.size)
        content = self._system.cat_file(self._remote, start=begin, end=end)
        if len(content) != end - begin:
            raise OSError(f"{self._remote} gave {len(content)} bytes in place of {end - begin}.")
        with self._place.open("r+b") as file:
            file.seek(begin)
            file.write(content)
        self._has[first:last] = True


class _RemoteReader(io.RawIOBase):
    """Reads a remote file through its local one.

    Each thread has a position of its own: a database's threads share a file, and seek and read it in turn.
    """

    def __init__(self, file: RemoteFile, place: Path) -> None:
        self._file = file
        self._at: dict[int, int] = {}
        self._local = os.open(place, os.O_RDONLY)

    def close(self) -> None:
        if not self.closed:
            os.close(self._local)
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at.get(threading.get_ident(), 0)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._file.size}[whence]
        self._at[threading.get_ident()] = base + offset
        return base + offset

    def readinto(self, buffer: Any) -> int:
        view, at = memoryview(buffer).cast("B"), self.tell()
        end = min(at + len(view), self._file.size)
        if end <= at:
            return 0
        self._file.fetch(at, end)
        count = os.preadv(self._local, [view[: end - at]], at)
        self.seek(at + count)
        return count


def _name(root: str) -> str:
    name = root.rstrip("/").rsplit("/", 1)[-1]
    return name if name not in ("", ".", "..") else "profile.nprof"


def _is_inside(name: str) -> bool:
    """Whether a listed name stays below the folder."""
    return bool(name) and not name.startswith("/") and ".." not in name.split("/")


def _file_system(url: str) -> tuple[Any, str]:
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ImportError as error:
        raise NotAProfileError(
            f"{url} needs the package fsspec: pip install 'neuron-tools[cluster]'."
        ) from error
    try:
        system, root = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise NotAProfileError(f"{url} cannot be opened: {error}.") from error
    return system, str(root)
