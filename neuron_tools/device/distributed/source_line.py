"""The user's line that issued a collective."""

from __future__ import annotations

import os
import sys
from functools import lru_cache

BACKWARD = "backward"


def source_line() -> str:
    """ "train.py:31" of the innermost frame that is no library's; "backward" on autograd's own thread."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not _is_internal(file):
            return f"{_shown(file)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]  # None ends the walk
    return BACKWARD


@lru_cache(maxsize=4096)
def _is_internal(file: str) -> bool:
    return file.startswith(("<", *_folders()))


@lru_cache(maxsize=4096)
def _shown(file: str) -> str:
    """The path below the working directory where it is there."""
    relative = os.path.relpath(file)
    return os.path.abspath(file) if relative.startswith("..") else relative


@lru_cache(maxsize=1)
def _folders() -> tuple[str, ...]:
    import torch

    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    standard = os.path.dirname(os.__file__)
    third_party = os.path.dirname(os.path.dirname(torch.__file__))
    return (*(folder + os.sep for folder in (package, standard, third_party)),)
