"""Files that appear whole or not at all, and bytes that lie in a file without a name."""

from __future__ import annotations

import hashlib
import mmap
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_CHUNK_BYTES = 1 << 20


def write_whole(path: Path, data: bytes | Callable[[IO[bytes]], object]) -> None:
    """Write a file in one step: whoever reads `path` sees the old file, the new one, or none.

    Args:
        path: Where.
        data: What, or a function that writes it.

    Raises:
        OSError: The disk is full or the folder cannot be written; nothing is left behind.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data) if isinstance(data, bytes) else data(file)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@dataclass(frozen=True)
class Mapped:
    """Memory that a file without a name backs.

    Attributes:
        memory: Its bytes; writing into them changes no file.
        sha256: Of the bytes, in hexadecimal digits.
    """

    memory: mmap.mmap
    sha256: str


def mapped(write: Callable[[IO[bytes]], object]) -> Mapped:
    """What a function writes, in memory that takes room only where somebody looks at it.

    Raises:
        OSError: The disk of the temporary folder is full.
    """
    with tempfile.TemporaryFile() as file:
        write(file)
        file.flush()
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        file.seek(0)
        digest = hashlib.sha256()
        while data := file.read(_CHUNK_BYTES):
            digest.update(data)
        return Mapped(memory, digest.hexdigest())
