"""Where things stand in a profile directory: `profile.json`, one folder of parts per table, their names.

The reader, the writer and everything that inspects a profile's files share these few rules.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.schema import SCHEMA_VERSION, TABLES

FORMAT = "neuron-tools-profile"
FORMAT_VERSION = (1, 0)
MANIFEST_NAME = "profile.json"
PART_SUFFIX = ".parquet"
TEMPORARY_SUFFIX = ".writing"
SPILL_PREFIX = ".spill-"
"""Of folders in a profile for what does not fit into memory while its tables are derived."""
PROTOCOL = "nprof"
"""Of the file system by which the database reads a profile behind a URL."""
_PART_NAME = re.compile(r"part-(\d{1,9})-(\d{1,9})(?:-(\d{1,9}))?\.parquet")
_JOINED_DASHES = 3


class NotAProfileError(NeuronToolsError):
    """The path is no profile, or one that this version cannot read."""


def part_name(process_idx: int, first_window: int, last_window: int | None = None) -> str:
    """File name of a table's part: parts of a process sort by name in the order of writing.

    Args:
        last_window: Of a part that was joined from several.
    """
    covered = "" if last_window is None else f"-{last_window:06d}"
    return f"part-{process_idx:04d}-{first_window:06d}{covered}{PART_SUFFIX}"


def part_range(path: Path) -> tuple[int, int, int] | None:
    """Process, first and last window that a part's name tells; None for files named otherwise.

    A part that was not joined tells its first window only: it may hold more.
    """
    found = _PART_NAME.fullmatch(path.name)
    if found is None:
        return None
    process, first, last = found.groups()
    return int(process), int(first), int(last or first)


def part_files(directory: Path, table: str) -> list[Path]:
    """Finished parts of a table, in order: `<table>/*.parquet`, or the single file `<table>.parquet`.

    Parts that a joined one covers are left out.
    """
    folder = directory / table
    parts = _uncovered(sorted(folder.glob(f"*{PART_SUFFIX}"))) if folder.is_dir() else []
    single = directory / f"{table}{PART_SUFFIX}"
    return [*([single] if single.is_file() else []), *parts]


def _uncovered(parts: list[Path]) -> list[Path]:
    """Parts without those whose windows stand in a joined part too."""
    kept: list[Path] = []
    covered: dict[int, int] = {}  # by process: the last window of the joined part before
    for path in sorted(parts, key=_joined_first):
        place = part_range(path)
        if place is not None:
            process, first, last = place
            if first <= covered.get(process, -1):
                continue
            if last > first or path.stem.count("-") == _JOINED_DASHES:
                covered[process] = last
        kept.append(path)
    return kept


def _joined_first(path: Path) -> tuple[str, int]:
    """By name; of parts that begin with one window, the one that covers most comes first."""
    place = part_range(path)
    if place is None:
        return path.name, 0
    return part_name(*place[:2]), -place[2] - (path.stem.count("-") == _JOINED_DASHES)


def stored_tables(directory: Path) -> Iterator[tuple[str, list[Path]]]:
    """Tables of the schema that have at least one part, with their parts."""
    if directory.is_dir():
        there = {entry.removesuffix(PART_SUFFIX) for entry in os.listdir(directory)}
        for table in filter(there.__contains__, TABLES):
            if parts := part_files(directory, table):
                yield table, parts


def new_manifest(metadata: Mapping[str, Any], producer: str) -> dict[str, Any]:
    """The content of `profile.json` of a profile that has just been begun."""
    return {
        "format": FORMAT,
        "format_version": ".".join(map(str, FORMAT_VERSION)),
        "schema_version": SCHEMA_VERSION,
        "producer": producer,
        **metadata,
        "complete": False,
        "tables": {},
    }


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write `profile.json`; it appears whole or not at all.

    Raises:
        OSError: The directory cannot be written.
    """
    temporary = directory / f"{MANIFEST_NAME}.{os.getpid()}{TEMPORARY_SUFFIX}"
    try:
        temporary.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", "utf-8")
        os.replace(temporary, directory / MANIFEST_NAME)
    finally:
        temporary.unlink(missing_ok=True)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The content of `profile.json`.

    Raises:
        NotAProfileError: It is missing, damaged, or of a newer format; the message says which.
    """
    path = directory / MANIFEST_NAME
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise NotAProfileError(
            f"{directory} is no profile: it has no {MANIFEST_NAME}. Name the NAME.nprof folder that "
            "neuron-profile capture wrote."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise NotAProfileError(
            f"{path} cannot be read ({_reason(error)}): restore it, or capture the profile again."
        ) from error
    _check_format(path, manifest)
    return dict(manifest)


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not valid JSON"


def _check_format(path: Path, manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise NotAProfileError(f"{path} belongs to something else: it does not say {FORMAT!r}.")
    version = str(manifest.get("format_version", ""))
    major = version.split(".")[0]
    if not major.isdigit():
        raise NotAProfileError(f"{path} names no valid format version ({version!r}): it is damaged.")
    if int(major) > FORMAT_VERSION[0]:
        raise NotAProfileError(
            f"{path} has format {version}, newer than this version of Neuron Tools can read "
            f"({FORMAT_VERSION[0]}.x): upgrade with `pip install --upgrade neuron-tools`."
        )
