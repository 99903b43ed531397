"""What `importlib.metadata` tells of the packages here: libraries take one without a version for absent."""

from __future__ import annotations

import os
from importlib.metadata import Distribution
from pathlib import Path


class CompatibleDistribution(Distribution):
    """The name and the version of a package.

    Args:
        name: Of the package.
        version: What its `__version__` says.
    """

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        """The text of a file of metadata; there is no other than `METADATA`."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Where a file of the distribution is."""
        return Path(__file__).parent / path
