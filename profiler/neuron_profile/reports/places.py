"""Source places as they are printed: short, and never taken for markup."""

from __future__ import annotations

import os
import re
from pathlib import Path

from neuron_profile.analysis.source_frames import SourceLine

_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def place(line: SourceLine, width: int | None = None) -> str:
    """FILE:LINE, relative to the working directory, installed packages or Python where it lies there.

    Args:
        width: Most characters to use; the beginning of the path is cut, the end tells more.

    Example:
        >>> place(SourceLine("/usr/lib/python3/site-packages/torch/nn/linear.py", 12))
        'torch/nn/linear.py:12'
    """
    text = f"{short_path(line.file)}:{line.line}"
    return text if width is None or len(text) <= width else f"…{text[1 - width :]}"


def short_path(file: str) -> str:
    """The file's path without what every reader of it knows."""
    parts = Path(file).parts
    for folder in _PACKAGE_FOLDERS:
        if folder in parts:
            return str(Path(*parts[parts.index(folder) + 1 :]))
    for library, python in enumerate(parts[1:]):
        if parts[library] in ("lib", "lib64") and re.fullmatch(r"(python|pypy)3(\.\d+)?", python):
            return str(Path(*parts[library + 1 :]))
    if not os.path.isabs(file):
        return file
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
