"""What a compiled artifact from elsewhere may take: checked before memory is taken for it."""

from __future__ import annotations

import zipfile

MOST_FILE_BYTES = 16 << 30
MOST_PIECES = 1 << 16
"""Each weight of a model is one."""
FREE_BYTES = 512 << 20
"""What any artifact may become, however small its file: tables of instructions compress well."""
MOST_RATIO = 40
"""Bytes for each byte of a file beyond `FREE_BYTES`. Those that the compiler writes have at most 17."""


class LimitError(ValueError):
    """A limit is passed; the text goes behind the file's name."""


def check_size(file_bytes: int) -> None:
    """Refuse a file that is larger than any artifact.

    Raises:
        LimitError: It is.
    """
    if file_bytes > MOST_FILE_BYTES:
        raise LimitError(f"has {file_bytes} bytes, {MOST_FILE_BYTES} at most are read")


def check_archive(archive: zipfile.ZipFile, file_bytes: int) -> None:
    """Refuse an archive by its directory; what a piece has beyond the size given there is never unpacked.

    Raises:
        LimitError: It has too many pieces, or they are too large for the file.
    """
    pieces = archive.infolist()
    if len(pieces) > MOST_PIECES:
        raise LimitError(f"has {len(pieces)} pieces, {MOST_PIECES} at most are read")
    total = sum(piece.file_size for piece in pieces)
    most = FREE_BYTES + MOST_RATIO * file_bytes
    if total > most:
        raise LimitError(f"would unpack to {total} bytes, {most} at most are read")
