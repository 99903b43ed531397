"""How thoroughly a plain call of a kernel is checked."""

from __future__ import annotations

import os

CHECKS = "NKI_CHECKS"
"""Environment variable: "fast" leaves out capacity, and the checks of a plain call that cost most."""


def is_thorough() -> bool:
    """Whether everything is checked that the device or its compiler would refuse."""
    return os.environ.get(CHECKS) != "fast"
