"""Large arrays of a program in a file: cases that need more memory than a machine has still run, slowly.

A program under test, NumPy and PyTorch included, allocates through the C library; `file_memory.c` is
preloaded there and gives large allocations parts of a file without a name, beyond a budget of memory. Pages
stay with the process for its next arrays: a new one costs as much as filling it, and on a virtual machine,
whose host has to find it first, up to ten times as much.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SMALLEST_BYTES = 1 << 26
"""Smaller allocations always lie in memory."""
_RESIDENT = "FILE_MEMORY_RESIDENT_BYTES"
_SOURCE = Path(__file__).with_suffix(".c")


def variables(
    folder: Path, smallest_bytes: int = SMALLEST_BYTES, resident_bytes: int = 0, kept_bytes: int = 0
) -> dict[str, str]:
    """The environment of a process whose large allocations lie in a file.

    Args:
        folder: Where the library is built.
        smallest_bytes: Size from which an allocation may lie in the file.
        resident_bytes: Memory for allocations of a MiB and more, which stays with the process; beyond it they
            lie in the file, where they are large enough.
        kept_bytes: Of the file, what stays with the process.

    Returns:
        Nothing where the system has no C compiler: all allocations stay in memory.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    library = folder.resolve() / "file_memory.so"
    if not library.is_file() or library.stat().st_mtime < _SOURCE.stat().st_mtime:
        _build(compiler, library)
    return {
        "LD_PRELOAD": os.pathsep.join(filter(None, [str(library), os.environ.get("LD_PRELOAD")])),
        "FILE_MEMORY_BYTES": str(smallest_bytes),
        _RESIDENT: str(resident_bytes),
        "FILE_MEMORY_KEPT_BYTES": str(kept_bytes),
        "FILE_MEMORY_FOLDER": tempfile.gettempdir(),
    }


def let_go() -> None:
    """Give memory of small arrays that this process keeps back to the system."""
    ctypes.CDLL(None).malloc_trim(0)


def resident_bytes() -> int:
    """Memory for large arrays that stays with this process."""
    return int(os.environ.get(_RESIDENT, "0"))


def _build(compiler: str, library: Path) -> None:
    """Compile the library; a process that uses an older one keeps it."""
    made = library.with_suffix(f".{os.getpid()}")
    options = ["-shared", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror"]
    subprocess.run([compiler, *options, "-o", str(made), str(_SOURCE)], check=True)
    made.replace(library)
