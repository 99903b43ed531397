"""Folders that packages were installed into anywhere, as by `pip install --target FOLDER`.

Their paths do not tell. What does is the record that an installer leaves beside the packages (`*.dist-info`):
a file is installed where a folder above it has such a record of the package or module that it belongs to. So
the user's own files beside them (a function's archive, say) stay the user's.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from neuron_tools.profile.store.frontier import is_installed

_RECORDS = "*.dist-info/RECORD"


class InstallFolders:
    """Tells into which folder a file was installed; each folder is read once."""

    def __init__(self) -> None:
        self._folders: dict[Path, _Folder] = {}

    def of(self, file: str) -> str | None:
        """The folder into which the file was installed; None where it was not, or where its path tells so.

        Args:
            file: Absolute path; others, such as `<string>`, are in no folder.
        """
        path = Path(file)
        if not path.is_absolute() or is_installed(file):
            return None
        for folder in path.parents:
            known = self._folders.setdefault(folder, _Folder(folder))
            if path.relative_to(folder).parts[0] in known.installed:
                return str(folder)
        return None


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def installed(self) -> frozenset[str]:
        """Names of the packages and modules that were installed into it."""
        return frozenset(name for record in self._path.glob(_RECORDS) for name in _recorded(record))


def _recorded(record: Path) -> Iterator[str]:
    """First parts of the paths that a record lists; none where it cannot be read."""
    try:
        with record.open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
            yield from {PurePosixPath(row[0]).parts[0] for row in csv.reader(lines) if row and row[0]}
    except (OSError, csv.Error):
        return
