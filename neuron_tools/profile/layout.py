"""Where things stand in a profile directory: `profile.json`, one folder of parts per table, their names.

The reader, the writer and everything that inspects a profile's files share these few rules.
"""

from __future__ import annotations

import json
import os
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


class NotAProfileError(NeuronToolsError):
    """The path is no profile, or one that this version cannot read."""


def part_name(process_idx: int, number: int) -> str:
    """File name of a table's part: parts of a process sort by name in the order of writing."""
    return f"part-{process_idx:04d}-{number:06d}{PART_SUFFIX}"


def part_files(directory: Path, table: str) -> list[Path]:
    """Finished parts of a table, in order: `<table>/*.parquet`, or the single file `<table>.parquet`."""
    folder = directory / table
    parts = sorted(folder.glob(f"*{PART_SUFFIX}")) if folder.is_dir() else []
    single = directory / f"{table}{PART_SUFFIX}"
    return [*([single] if single.is_file() else []), *parts]


def stored_tables(directory: Path) -> Iterator[tuple[str, list[Path]]]:
    """Tables of the schema that have at least one part, with their parts."""
    for table in TABLES:
        parts = part_files(directory, table)
        if parts:
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
    except FileNotFoundError:
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
