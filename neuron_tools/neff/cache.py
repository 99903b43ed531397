"""Compiled computations on disk: what was compiled once for a target and options is not compiled again.

One `MODULE_KEY/model.neff` per graph, as AWS's cache names them, and one `OPERATION_KEY/executable.npz` per
single operation, which holds its times too, below one folder that any number of processes share. A file
appears whole or not at all, so readers need no lock; the folder's size is kept below a limit by removing what
was not used for the longest time.
"""

from __future__ import annotations

import hashlib
import os
import pwd
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from neuron_tools.neff.archive import Neff, NeffError, read_neff
from neuron_tools.neff.files import write_whole
from neuron_tools.records.executable import Executable, ExecutableError, load, packed

URL_VARIABLE = "NEURON_COMPILE_CACHE_URL"
LIMIT_VARIABLE = "NEURON_TOOLS_COMPILE_CACHE_BYTES"
DEFAULT_LIMIT_BYTES = 2 * 2**30
OFF = ("off", "none", "0")
_GRAPH, _OPERATION = ("MODULE_", "model.neff"), ("OPERATION_", "executable.npz")
_LOW_WATER = 0.8  # how full the folder is after a clean-up
Found = TypeVar("Found", Neff, Executable)


class CompileCache:
    """A folder of compiled computations.

    Args:
        folder: Where; made when the first computation is kept.
        limit_bytes: What the files may take together; a computation larger than that is not kept.
    """

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._known_bytes: int | None = None

    def find(self, key: str) -> Neff | None:
        """The computation kept under a key; None where there is none, or what is there is damaged."""
        return _read(self._path(key), read_neff)

    def find_operation(self, key: str) -> Executable | None:
        """The operation kept under a key, with its times; None where there is none, or it is damaged."""
        return _read(self._path(key, _OPERATION), load)

    def keep(self, key: str, neff: Neff) -> None:
        """Keep a computation, and remove old ones where the folder gets too large.

        Raises:
            NeffError: The disk is full or the folder cannot be written; nothing half-written is left.
        """
        self._keep(self._path(key), neff.to_bytes())

    def keep_operation(self, key: str, executable: Executable) -> None:
        """Keep a compiled operation with its times.

        Raises:
            NeffError: As for `keep`.
        """
        self._keep(self._path(key, _OPERATION), packed(executable))

    def _keep(self, path: Path, data: bytes) -> None:
        if len(data) > self.limit_bytes:
            return
        try:
            _write(path, data)
        except OSError as error:
            raise NeffError(
                f"The compile cache {self.folder} cannot be written ({error.strerror}): free some space, or "
                f"name another folder in {URL_VARIABLE}."
            ) from error
        self._make_room(len(data))

    def get(self, key: str, make: Callable[[], Neff]) -> Neff:
        """The computation of a key, made where it is not kept yet.

        Two processes that need the same one at the same time both make it; one file remains.

        Raises:
            NeffError: It cannot be kept.
        """
        found = self.find(key)
        if found is None:
            found = make()
            self.keep(key, found)
        return found

    def clear(self) -> None:
        """Remove all computations; other files in the folder stay."""
        for _, _, path in self._files():
            _remove(path)
        self._known_bytes = None

    def _path(self, key: str, kind: tuple[str, str] = _GRAPH) -> Path:
        prefix, name = kind
        return self.folder / f"{prefix}{key}" / name

    def _make_room(self, added_bytes: int) -> None:
        """Files that other processes add or remove meanwhile only make the count a little wrong."""
        if self._known_bytes is not None:
            self._known_bytes += added_bytes
        if self._known_bytes is None or self._known_bytes > self.limit_bytes:
            self._known_bytes = self._clean_up()

    def _clean_up(self) -> int:
        """Remove the files unused for longest until there is room again; returns the bytes that remain."""
        files = sorted(self._files(), key=lambda entry: entry[0])
        total = sum(size for _, size, _ in files)
        if total <= self.limit_bytes:
            return total
        for _, size, path in files:
            if total <= self.limit_bytes * _LOW_WATER:
                break
            _remove(path)
            total -= size
        return total

    def _files(self) -> list[tuple[int, int, Path]]:
        """(time of last use in ns, bytes, path) of each file."""
        found = []
        for prefix, name in (_GRAPH, _OPERATION):
            for path in self.folder.glob(f"{prefix}*/{name}"):
                with suppress(OSError):
                    status = path.stat()
                    found.append((status.st_mtime_ns, status.st_size, path))
        return found


def _read(path: Path, read: Callable[[Path], Found]) -> Found | None:
    """What a file holds, marked as used; None where there is none, or it was damaged and is removed."""
    if not os.path.isfile(path):  # Path.is_file raises where the folder is closed or its name too long
        return None
    try:
        found = read(path)
    except (NeffError, ExecutableError):
        _remove(path)
        return None
    with suppress(OSError):
        os.utime(path)
    return found


def _write(path: Path, data: bytes) -> None:
    """Write a computation into a folder of its own, which another process may remove at this moment."""
    for again in (True, False):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return write_whole(path, data)
        except OSError as error:
            with suppress(OSError):
                path.parent.rmdir()
            if not (again and isinstance(error, FileNotFoundError)):
                raise


def _remove(path: Path) -> None:
    """Remove a computation's file and its folder, which another process may have done or filled anew."""
    with suppress(OSError):
        path.unlink()
    with suppress(OSError):
        path.parent.rmdir()


def named_cache(environment: Mapping[str, str] = os.environ) -> CompileCache | None:
    """The cache in the folder that `NEURON_COMPILE_CACHE_URL` names; None where it names none."""
    return cache_of_user(environment) if environment.get(URL_VARIABLE) else None


def cache_of_user(environment: Mapping[str, str] = os.environ, folder: str = "") -> CompileCache | None:
    """The cache that the environment asks for; None where it is switched off, or the user has no home.

    Args:
        environment: Variables: `NEURON_COMPILE_CACHE_URL` names the folder, or "off";
            `NEURON_TOOLS_COMPILE_CACHE_BYTES` the limit.
        folder: What a compiler option names, if anything; it wins.
    """
    chosen = folder or environment.get(URL_VARIABLE, "")
    if chosen.lower() in OFF:
        return None
    base = environment.get("XDG_CACHE_HOME") or _cache_of_home(environment.get("HOME"))
    if not chosen and base is None:
        return None
    path = Path(chosen.removeprefix("file://")) if chosen else Path(base or "") / "neuron-tools" / "compiled"
    limit = environment.get(LIMIT_VARIABLE, "")
    return CompileCache(path, int(limit) if limit.isdecimal() else DEFAULT_LIMIT_BYTES)


def _cache_of_home(home: str | None) -> str | None:
    """The cache folder of the user's home; None for a user without one.

    A folder of a name that others know, in /tmp, would let them put programs there.
    """
    if not home:
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return os.path.join(home, ".cache")


def digest(*parts: bytes | str) -> str:
    """A key made of parts; the same parts give the same key in every process."""
    summed = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        summed.update(len(data).to_bytes(8, "little"))
        summed.update(data)
    return summed.hexdigest()[:40]
