"""Where the simulated driver's tree is, and the lock that keeps its writers apart."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "NEURON_SYSFS_ROOT"
_SHARED_MEMORY = Path("/dev/shm")
_LOCK = ".lock"


def root_folder() -> Path | None:
    """The folder that holds `neuron0`, `neuron1`, ...; None where `$NEURON_SYSFS_ROOT` is empty: no tree."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    shared = _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK)
    parent = _SHARED_MEMORY if shared else Path(tempfile.gettempdir())
    return parent / f"neuron-sysfs-{os.getuid()}"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Keeps other processes from changing the tree's shape; the folder is made if it is not there.

    The lock's file goes with the tree: whoever got one that was removed meanwhile takes the new one.

    Raises:
        OSError: The folder cannot be made or written.
    """
    while True:
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            lock = (root / _LOCK).open("a")
        except FileNotFoundError:
            continue
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_current(root / _LOCK, lock.fileno()):
                yield
                return


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
