"""Large arrays of a program in files: cases that need more memory than a machine has still run, slowly.

A program under test, NumPy and PyTorch included, allocates through the C library; `file_memory.c` is
preloaded there and maps large allocations to files without a name, beyond a budget of memory. Memory that
was given back stays with the process for its next arrays: each new page costs about as much as filling it.
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
_SOURCE = Path(__file__).with_suffix(".c")


def variables(folder: Path, smallest_bytes: int = SMALLEST_BYTES, resident_bytes: int = 0) -> dict[str, str]:
    """The environment of a process whose large allocations lie in files.

    Args:
        folder: Where the library is built.
        smallest_bytes: Size from which an allocation may lie in a file.
        resident_bytes: Memory that allocations of a MiB and more take and keep for later ones; beyond it
            they lie in files, where they are large enough.

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
        "FILE_MEMORY_RESIDENT_BYTES": str(resident_bytes),
        "FILE_MEMORY_FOLDER": tempfile.gettempdir(),
    }


def let_go() -> None:
    """Give the memory that this process keeps for later arrays back to the system."""
    ctypes.CDLL(None).malloc_trim(0)


def _build(compiler: str, library: Path) -> None:
    """Compile the library; a process that uses an older one keeps it."""
    made = library.with_suffix(f".{os.getpid()}")
    options = ["-shared", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror"]
    subprocess.run([compiler, *options, "-o", str(made), str(_SOURCE)], check=True)
    made.replace(library)
