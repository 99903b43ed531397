"""The profiles that one Explorer serves: found in the folders and files it was given, opened when needed.

A profile's id is a short hash of its absolute path, so that addresses stay valid from run to run and
carry no path. A request can name profiles by id only: nothing outside the library can be reached.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from time import monotonic

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile, open_profile
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.remote import is_url

ID_DIGITS = 12
FOLDER_DEPTH = 3  # below a folder that the user named; deeper ones are not looked into
PROFILE_SUFFIX = ".nprof"
GROWTH_S = 3.0  # a profile that is being written is read anew no sooner than this
RETIRED = 8  # outdated states of profiles that stay open


class UnknownProfileError(NeuronToolsError):
    """The library has no profile of that id."""


@frozen
class ProfileEntry:
    """A profile that the library knows of; it need not be open.

    Attributes:
        id: Short stable hash of the absolute path.
        location: The profile's folder, or the URL of one.
        folder: Folder of the command line in which it was found; "" where it was named itself.
    """

    id: str
    location: str
    folder: str = ""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.location.rstrip("/").rpartition("/")[2]


@dataclass
class _Opened:
    """A profile that is open, what its manifest was then, and when that was."""

    lock: Lock
    profile: Profile | None = None
    stamp: tuple[int, int] = (0, 0)
    at_s: float = 0.0


def profile_id(location: str | Path) -> str:
    """The id of a profile: a hash of its absolute path, links resolved, or of its URL."""
    text = str(location) if is_url(location) else os.path.realpath(location)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def is_profile(path: Path) -> bool:
    """Whether a folder is a profile: it has a manifest, or Parquet files with the published names."""
    if not path.is_dir():
        return False
    if (path / layout.MANIFEST_NAME).is_file():
        return True
    return any((path / f"{table}{layout.PART_SUFFIX}").is_file() for table in TABLES)


class ProfileLibrary:
    """Profiles by id. Safe to use from many threads; close it, or use it in a `with` statement.

    Args:
        paths: Profiles (folders, or URLs of folders), and folders that hold profiles.

    Raises:
        NotAProfileError: A path is neither.
    """

    def __init__(self, paths: Sequence[str | Path] = ()) -> None:
        self._lock = RLock()
        self._named: dict[str, ProfileEntry] = {}
        self._found: dict[str, ProfileEntry] = {}
        self._folders: list[Path] = []
        self._opened: dict[str, _Opened] = {}
        self._retired: list[Profile] = []
        self._before_close: list[Callable[[], None]] = []
        for path in paths:
            self.add(path)

    def __enter__(self) -> ProfileLibrary:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, path: str | Path) -> str | None:
        """Take a profile, or a folder of profiles, into the library.

        Returns:
            The profile's id; None for a folder.

        Raises:
            NotAProfileError: The path is neither.
        """
        if is_url(path):
            return self._name(str(path))
        try:
            resolved = Path(path).resolve()
            resolved.stat()
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:  # too long, a null character, a loop of links
            reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
            raise layout.NotAProfileError(f"{str(path)[:200]!r} cannot be opened: {reason}.") from error
        if resolved.name == layout.MANIFEST_NAME and resolved.is_file():
            resolved = resolved.parent
        if not resolved.exists():
            raise layout.NotAProfileError(f"{path} does not exist: name a profile, or a folder of profiles.")
        if not resolved.is_dir():
            raise layout.NotAProfileError(
                f"{path} is a file, not a profile: name a NAME.nprof folder, or import a trace of another "
                "tool with `neuron-profile import`, or on the page Profiles."
            )
        if is_profile(resolved):
            return self._name(str(resolved))
        with self._lock:
            if resolved not in self._folders:
                self._folders.append(resolved)
        return None

    def entries(self) -> tuple[ProfileEntry, ...]:
        """All profiles there are now: those named, then those in folders by path. Reads the folders."""
        found = dict(self._named)
        for folder in self._folders:
            for path in _profiles_below(folder, FOLDER_DEPTH):
                entry = ProfileEntry(profile_id(path), str(path), str(folder))
                found.setdefault(entry.id, entry)
        with self._lock:
            self._found = found
        return tuple(found.values())

    def entry(self, wanted: str) -> ProfileEntry:
        """The entry of an id.

        Raises:
            UnknownProfileError: There is none.
        """
        with self._lock:
            found = self._named.get(wanted) or self._found.get(wanted)
        if found is None:
            found = next((entry for entry in self.entries() if entry.id == wanted), None)
        if found is None or not _exists(found.location):
            raise UnknownProfileError(
                "There is no such profile here: it was moved or deleted. Choose one on the page Profiles."
            )
        return found

    def get(self, wanted: str) -> Profile:
        """The open profile of an id; opened once, and again when its capture has gone on.

        Raises:
            UnknownProfileError: There is no such id.
            NotAProfileError: What stands there cannot be read.
        """
        entry = self.entry(wanted)
        with self._lock:
            opened = self._opened.setdefault(wanted, _Opened(Lock()))
        with opened.lock:
            is_growing = opened.profile is not None and not opened.profile.complete
            if opened.profile is not None and is_growing and monotonic() - opened.at_s < GROWTH_S:
                return opened.profile
            stamp = _growing_stamp(entry.location) if is_growing else _stamp(entry.location)
            if opened.profile is None or stamp != opened.stamp:
                fresh = open_profile(entry.location)
                if opened.profile is not None:
                    self._retire(opened.profile)
                opened.profile, opened.at_s = fresh, monotonic()
                opened.stamp = _stamp(entry.location) if fresh.complete else _growing_stamp(entry.location)
            return opened.profile

    def _retire(self, profile: Profile) -> None:
        """Keep an outdated profile open for the threads that still read it; they soon have the new one."""
        with self._lock:
            self._retired.append(profile)
            outdated = self._retired[:-RETIRED]
            del self._retired[:-RETIRED]
        for old in outdated:
            _close(old)

    def drop(self, wanted: str) -> None:
        """Close a profile, and forget it if it was named; one in a folder stays listed while it is there."""
        with self._lock:
            opened = self._opened.pop(wanted, None)
            self._named.pop(wanted, None)
        if opened is not None and opened.profile is not None:
            _close(opened.profile)

    def call_before_close(self, function: Callable[[], None]) -> None:
        """Have something called before the profiles are closed, such as what ends work on them."""
        self._before_close.append(function)

    def close(self) -> None:
        """Close all profiles."""
        for function in self._before_close:
            function()
        with self._lock:
            profiles = [opened.profile for opened in self._opened.values() if opened.profile is not None]
            profiles.extend(self._retired)
            self._opened.clear()
            self._retired.clear()
        for profile in profiles:
            _close(profile)

    def _name(self, location: str) -> str:
        entry = ProfileEntry(profile_id(location), location)
        with self._lock:
            self._named.setdefault(entry.id, entry)
        return entry.id


def _profiles_below(folder: Path, depth: int) -> Iterator[Path]:
    """Profiles in a folder, by name; hidden folders and links are left out."""
    try:
        children = sorted(entry.path for entry in os.scandir(folder) if _is_plain_folder(entry))
    except OSError:
        return
    for child in map(Path, children):
        if is_profile(child):
            yield child
        elif depth > 1:
            yield from _profiles_below(child, depth - 1)


def _is_plain_folder(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)


def _close(profile: Profile) -> None:
    """Close a profile; one that a thread still reads is closed when that thread is done with it."""
    import duckdb

    with suppress(duckdb.Error):
        profile.close()


def _exists(location: str) -> bool:
    return is_url(location) or os.path.isdir(location)


def _growing_stamp(location: str) -> tuple[int, int]:
    """The same of a profile that is being written: its tables grow while its manifest stays as it is."""
    newest, size = _stamp(location)
    for folder, _, names in os.walk(location):
        for name in (name for name in names if name.endswith(layout.PART_SUFFIX)):
            with suppress(OSError):
                status = os.stat(os.path.join(folder, name))
                newest, size = max(newest, status.st_mtime_ns), size + status.st_size
    return newest, size


def _stamp(location: str) -> tuple[int, int]:
    """Time and size of the manifest; equal stamps mean that the tables are the same."""
    try:
        status = os.stat(os.path.join(location, layout.MANIFEST_NAME))
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
