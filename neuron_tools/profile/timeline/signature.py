"""Tells whether a stored index belongs to the tables beside it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

INDEX_VERSION = 1
TAIL_BYTES = 4096  # a Parquet part's footer: offsets and statistics of its last columns


def parts_signature(parts: Mapping[str, Sequence[Path]]) -> str:
    """A hash of the names, sizes and last bytes of the parts of the tables that the timeline shows.

    Costs one small read a part, and survives copying the profile.
    """
    digest = hashlib.blake2b(f"{INDEX_VERSION}".encode(), digest_size=16)
    for table in sorted(parts):
        for path in parts[table]:
            digest.update(f"\n{table}/{path.name} ".encode())
            digest.update(_tail(path))
    return digest.hexdigest()


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as part:
            size = part.seek(0, os.SEEK_END)
            part.seek(max(size - TAIL_BYTES, 0))
            return f"{size} ".encode() + part.read()
    except OSError:
        return b"unreadable"
