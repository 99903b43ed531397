"""Source places as they are printed: short, and never taken for markup."""

from __future__ import annotations

import os
from pathlib import Path

from neuron_profile.analysis.source_frames import SourceLine

_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def place(line: SourceLine) -> str:
    """FILE:LINE, relative to the working directory or to the installed packages where it lies there.

    Example:
        >>> place(SourceLine("/usr/lib/python3/site-packages/torch/nn/linear.py", 12))
        'torch/nn/linear.py:12'
    """
    return f"{short_path(line.file)}:{line.line}"


def short_path(file: str) -> str:
    """The file's path without what every reader of it knows."""
    parts = Path(file).parts
    for folder in _PACKAGE_FOLDERS:
        if folder in parts:
            return str(Path(*parts[parts.index(folder) + 1 :]))
    if not os.path.isabs(file):
        return file
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
