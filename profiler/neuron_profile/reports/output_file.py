"""Where a report is written: standard output, or a file that is never overwritten by accident."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from neuron_tools.profile.export.destination import new_file


@contextmanager
def opened_output(path: Path | None, *, force: bool = False) -> Iterator[BinaryIO]:
    """A binary stream to write to; a file that fails half-way does not stay.

    Raises:
        UsageError: The file exists and `force` is not given, or its folder does not exist.
        ExportError: The disk is full or cannot be written.
    """
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with new_file(path, force=force) as stream:
        yield stream
