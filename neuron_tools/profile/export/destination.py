"""Writing without halves: a file or folder appears under its name only when it is whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from neuron_tools.errors import UsageError
from neuron_tools.profile.export.report import ExportError, RowCounter
from neuron_tools.profile.store.placing import placed_folder, umask


@contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A binary file that becomes `path` when the block ends well, and vanishes when it does not.

    Raises:
        UsageError: `path` exists (unless `force`), is a folder, or its folder does not exist.
        ExportError: The disk is full or cannot be written.
    """
    _require_free(path, force=force)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file to write.")
    with _explaining(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    temporary = Path(name)
    try:
        with _explaining(path):
            with os.fdopen(descriptor, "wb", buffering=1 << 20) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            _use_umask(temporary)
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """A folder that becomes `path` when the block ends well, and vanishes when it does not.

    Raises:
        UsageError: `path` exists and is not an empty folder (unless `force`), or its parent does not exist.
        ExportError: The disk is full or cannot be written.
    """
    _require_free(path, force=force)
    with _explaining(path), placed_folder(path) as temporary:
        yield temporary


def write_batches(
    batches: Iterable[pa.RecordBatch], open_writer: Callable[[pa.Schema], Any], rows: RowCounter
) -> int:
    """Write a table's batches; without any, no file is made.

    Args:
        batches: All of one schema.
        open_writer: Makes pyarrow's writer of a file with such a schema.
        rows: Told as they are written.

    Returns:
        How many rows there were.
    """
    written = 0
    writer = None
    try:
        for batch in batches:
            writer = writer or open_writer(batch.schema)
            writer.write_batch(batch)
            written += batch.num_rows
            rows.advance(batch.num_rows)
    finally:
        if writer is not None:
            writer.close()
    return written


def _require_free(path: Path, *, force: bool) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"The folder {path.parent} does not exist; make it first.")
    empty_folder = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if os.path.lexists(path) and not force and not empty_folder:
        raise UsageError(f"{path} exists; choose another name or allow overwriting with --force.")


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportError(f"Cannot write {path}: {reason}. Free space or choose another place.") from error


def _use_umask(path: Path) -> None:
    """`mkstemp` makes private files; an export is as readable as any file its user writes."""
    path.chmod(0o666 & ~umask())
