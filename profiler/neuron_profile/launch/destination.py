"""Where a capture goes: a name made from the script's, never a folder that exists."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from neuron_tools.errors import NeuronToolsError, UsageError

SUFFIX = ".nprof"
FALLBACK_NAME = "capture"
MINIMUM_FREE_BYTES = 32 * 2**20


class DestinationError(NeuronToolsError):
    """The folder for the profile cannot be made or has no room."""


def default_name(command: Sequence[str], script: Path | None) -> str:
    """Name of a capture without suffix: the script's, else the program's.

    Example:
        >>> default_name(["python", "examples/train.py"], Path("examples/train.py"))
        'train'
    """
    source = script if script is not None else Path(command[0])
    return source.stem or FALLBACK_NAME


def find_destination(asked: Path | None, name: str, folder: Path) -> Path:
    """A path that does not exist, where a profile can be made: tried by making the folder for a moment.

    Args:
        asked: What `-o` says; None to choose NAME.nprof, NAME-2.nprof, ... in `folder`.
        name: Name to choose from.
        folder: The working directory.

    Raises:
        UsageError: The asked folder exists.
        DestinationError: It cannot be made, or its file system is almost full.
    """
    directory = asked if asked is not None else _first_free(name, folder)
    if os.path.lexists(directory):
        raise UsageError(f"The output folder {directory} exists: choose another with -o, or remove it first.")
    made = _missing_folders(directory)
    try:
        directory.mkdir(parents=True)
        _check_room(directory)
    except OSError as error:
        raise DestinationError(
            f"The output folder {directory} cannot be made ({_reason(error)}): choose another with -o."
        ) from error
    finally:
        _remove(made)
    return directory


def shown(directory: Path) -> str:
    """The folder as a command line in the working directory would name it."""
    relative = os.path.relpath(directory)
    return shlex.quote(str(directory) if relative.startswith("..") else relative)


def _first_free(name: str, folder: Path) -> Path:
    directory, number = folder / f"{name}{SUFFIX}", 1
    while os.path.lexists(directory):
        number += 1
        directory = folder / f"{name}-{number}{SUFFIX}"
    return directory


def _missing_folders(directory: Path) -> list[Path]:
    """The folder and those above it that do not exist yet, innermost first."""
    return [folder for folder in (directory, *directory.parents) if not folder.exists()]


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return  # was not made, or somebody else uses it now


def _check_room(directory: Path) -> None:
    """Refuse early what would fail in the middle of a long run."""
    status = os.statvfs(directory)
    free_bytes = status.f_bavail * status.f_frsize
    if free_bytes < MINIMUM_FREE_BYTES:
        raise DestinationError(
            f"The disk of {directory} is full ({free_bytes // 2**20} MiB free, a capture needs at least "
            f"{MINIMUM_FREE_BYTES // 2**20} MiB): free some space or choose another folder with -o."
        )


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full"
    return (error.strerror or str(error)).lower()
