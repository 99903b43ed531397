"""Profiles behind URLs: copied into a temporary folder, where they are opened like any other.

Works with every file system of fsspec: `s3://bucket/run.nprof`, `gs://`, `https://`, `memory://`, ...
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from neuron_tools.profile.layout import NotAProfileError


def is_url(path: str | Path) -> bool:
    """Whether a path names something behind a protocol, like `s3://bucket/run.nprof`."""
    return isinstance(path, str) and "://" in path


class Mirror:
    """A local copy of a profile that stands behind a URL; it lasts until it is closed.

    Args:
        url: The profile's folder.

    Attributes:
        directory: The copy.

    Raises:
        NotAProfileError: fsspec or the protocol's package is not installed, or nothing can be read there.
    """

    def __init__(self, url: str) -> None:
        system, root = _file_system(url)
        self._folder = tempfile.TemporaryDirectory(prefix="neuron-tools-")
        self.directory = Path(self._folder.name) / _name(root)
        self.directory.mkdir()
        try:
            self._copy(system, root.rstrip("/") + "/")
        except Exception as error:  # each file system has errors of its own
            self.close()
            raise NotAProfileError(f"{url} cannot be read ({error}): check the address.") from error
        if not any(self.directory.iterdir()):
            self.close()
            raise NotAProfileError(f"{url} does not exist, or is empty: name the folder of a profile.")

    def close(self) -> None:
        """Remove the copy."""
        self._folder.cleanup()

    def _copy(self, system: Any, root: str) -> None:
        for found in system.find(root.rstrip("/")):
            name = str(found)[len(root) :]
            if str(found).startswith(root) and _is_inside(name):
                place = self.directory / name
                place.parent.mkdir(parents=True, exist_ok=True)
                system.get_file(found, str(place))


def _name(root: str) -> str:
    name = root.rstrip("/").rsplit("/", 1)[-1]
    return name if name not in ("", ".", "..") else "profile.nprof"


def _is_inside(name: str) -> bool:
    """Whether a listed name stays below the folder when it is copied."""
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
