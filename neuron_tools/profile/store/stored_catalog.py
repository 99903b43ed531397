"""The catalog of a finished profile in one small file, so that opening need not read every part's end."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuron_tools.profile.store import layout
from neuron_tools.profile.store.catalog import Catalog, StoredTable, read_catalog
from neuron_tools.profile.store.remote import source_of

CATALOG_NAME = "catalog.json"
CATALOG_VERSION = 1
END_BYTES = 4096  # of a part: its first pages; the footer's offsets and statistics of its last columns
WHOLE_BYTES = 1 << 16  # smaller parts are hashed whole


def parts_signature(parts: Mapping[str, Sequence[Path]]) -> str:
    """A hash of the names, sizes, first and last bytes of parts, by table.

    Costs two small reads a part, and survives copying the profile.
    """
    digest = hashlib.blake2b(digest_size=16)
    for table in sorted(parts):
        for path in parts[table]:
            digest.update(f"\n{table}/{path.name} ".encode(errors="surrogateescape"))
            digest.update(_ends(path))
    return digest.hexdigest()


def open_catalog(directory: Path) -> Catalog:
    """The tables of a profile: from the stored catalog where it matches the parts, else from the parts."""
    parts = dict(layout.stored_tables(directory))
    stored = _read(directory)
    if stored is None or stored.get("signature") != parts_signature(parts):
        return read_catalog(directory)
    try:
        return Catalog(directory, {name: _table(name, parts[name], stored["tables"][name]) for name in parts})
    except (KeyError, TypeError, ValueError, AttributeError):
        return read_catalog(directory)


def store_catalog(catalog: Catalog) -> None:
    """Keep the catalog of a profile in which nothing is damaged.

    Raises:
        OSError: The folder cannot be written.
    """
    path = catalog.directory / CATALOG_NAME
    if catalog.missing:
        path.unlink(missing_ok=True)
        return
    content = {
        "version": CATALOG_VERSION,
        "signature": parts_signature({name: table.paths for name, table in catalog.tables.items()}),
        "tables": {
            name: {
                "rows": table.rows,
                "part_rows": list(table.part_rows),
                "columns": sorted(table.columns),
                "is_uniform": table.is_uniform,
            }
            for name, table in catalog.tables.items()
        },
    }
    temporary = path.with_name(f"{CATALOG_NAME}{layout.TEMPORARY_SUFFIX}")
    temporary.write_text(json.dumps(content, separators=(",", ":")), "utf-8")
    os.replace(temporary, path)


def _table(name: str, paths: Sequence[Path], stored: Mapping[str, Any]) -> StoredTable:
    """A table as it is stored.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: No writer stores one so.
    """
    columns, part_rows = stored["columns"], stored["part_rows"]
    is_counted = all(type(rows) is int and rows >= 0 for rows in part_rows)
    if not is_counted or len(part_rows) != len(paths) or sum(part_rows) != stored["rows"]:
        raise ValueError(f"{CATALOG_NAME} does not say how many rows the parts of {name} have.")
    for column in columns:
        column.encode()  # the database knows no others
    return StoredTable(
        name, tuple(paths), sum(part_rows), frozenset(columns), bool(stored["is_uniform"]), tuple(part_rows)
    )


def _read(directory: Path) -> dict[str, Any] | None:
    try:
        content = json.loads((directory / CATALOG_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    is_known = isinstance(content, dict) and content.get("version") == CATALOG_VERSION
    return content if is_known else None


def _ends(path: Path) -> bytes:
    try:
        source = source_of(path)
        with source.open("rb") if isinstance(source, Path) else source as part:
            size = path.stat().st_size
            first = part.read(WHOLE_BYTES if size <= WHOLE_BYTES else END_BYTES)
            part.seek(max(size - END_BYTES, len(first)))
            return f"{size} ".encode() + first + part.read()
    except OSError:
        return b"unreadable"
