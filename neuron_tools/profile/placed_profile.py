"""Writing a profile that stands under its name only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neuron_tools.errors import UsageError
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.placing import placed_folder
from neuron_tools.profile.store.recorded import NoSpaceError
from neuron_tools.profile.writer import ProfileWriteError, ProfileWriter, reason_of


@contextmanager
def placed_profile(target: Path, metadata: Mapping[str, Any], *, force: bool) -> Iterator[ProfileWriter]:
    """A writer whose profile takes its place when the block ends well, and vanishes when it does not.

    Args:
        target: The profile to make.
        metadata: What `profile.json` says beside the format.
        force: Whether to replace a profile that stands there.

    Raises:
        UsageError: The target exists and `force` is False, or its folder does not exist.
        NotAProfileError: Something other than a profile would be replaced.
        ProfileWriteError: The profile cannot be written; what stood there is as it was.
    """
    require_place(target, force=force)
    try:
        with (
            placed_folder(target) as folder,
            ProfileWriter(folder, metadata, overwrite=True) as writer,
        ):
            yield writer
    except (OSError, ProfileWriteError, NoSpaceError) as error:
        raise refusal(target, error) from error


def require_place(target: Path, *, force: bool) -> None:
    """See that a profile may take this place.

    Raises:
        UsageError: The target exists and `force` is False, or its folder does not exist.
        NotAProfileError: Something other than a profile would be replaced.
    """
    if not target.parent.is_dir():
        raise UsageError(f"The folder {target.parent} does not exist; make it first.")
    if not os.path.lexists(target):
        return
    if not force:
        raise UsageError(
            f"{target} exists: choose another folder with -o, or allow overwriting with --force."
        )
    if target.is_dir() and not any(target.iterdir()):
        return
    try:
        layout.read_manifest(target)
    except layout.NotAProfileError as error:
        raise layout.NotAProfileError(
            f"{target} exists and is no profile, and --force replaces nothing else: choose another folder "
            "with -o."
        ) from error


def refusal(target: Path, error: Exception) -> ProfileWriteError:
    """What the user is told when a profile cannot be written."""
    reason = reason_of(error if isinstance(error, OSError) else error.__cause__ or error)
    return ProfileWriteError(
        f"The profile {target} cannot be written ({reason}): free space or choose another folder with -o."
    )
