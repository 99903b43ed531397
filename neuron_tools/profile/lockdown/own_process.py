"""What a command that reads foreign files gives away before it reads them, in its own process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from neuron_tools.profile.lockdown import kernel

PROFILE_PACKAGE = Path(__file__).parents[1]


def give_away_all_but(folders: Iterable[Path]) -> bool:
    """Take from this process for good the network, other programs, and writing outside some folders.

    It may still write temporary files and keep compiled loops. To be called before threads are started.

    Returns:
        Whether the kernel could take both.
    """
    kept = [Path(tempfile.gettempdir()), *_code_folders(), *folders]
    kernel.leave_no_core_file()
    is_bound = kernel.write_only_below([folder for folder in kept if folder.is_dir()])
    return kernel.refuse_system_calls() and is_bound


def _code_folders() -> list[Path]:
    """Where numba keeps code: beside the source, else where its variable says, else in the user's cache.

    numba itself is not asked: many an import needs none of it, and loading it takes a second.
    """
    others = [os.environ.get("NUMBA_CACHE_DIR", ""), os.path.expanduser("~/.cache/numba")]
    return [*PROFILE_PACKAGE.rglob("__pycache__"), *(Path(other) for other in others if other)]
