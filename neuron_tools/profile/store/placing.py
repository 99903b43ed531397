"""A folder that appears under its name only when it is whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def placed_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path` that takes its place when the block ends well, and vanishes when it does not.

    Until then, what stands at `path` is as it was.

    Raises:
        OSError: It cannot be made, or cannot take the place.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~umask())
        _take_place(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def umask() -> int:
    """The permissions that this process withholds from files that it makes."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _take_place(temporary: Path, path: Path) -> None:
    """Puts `temporary` where `path` is; what was there comes back if that fails."""
    if not os.path.lexists(path):
        temporary.rename(path)
        return
    aside = temporary.with_name(temporary.name + ".old")
    path.rename(aside)
    try:
        temporary.rename(path)
    except BaseException:
        aside.rename(path)
        raise
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink()
