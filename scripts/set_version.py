"""Writes a new version wherever one stands: python scripts/set_version.py 0.2.0

`pyproject.toml` is the one that counts; npm needs its own copies, and a test holds them equal.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# File -> what stands before the version there. In the lock file only our own workspaces are meant.
PLACES = {
    "pyproject.toml": r'^version = "',
    "package.json": r'^  "version": "',
    "explorer_ui/timeline/package.json": r'^  "version": "',
    "vscode-extension/package.json": r'(?:^  "version"|"@neuron-tools/timeline"): "',
    "package-lock.json": r'(?:"name": "(?:@neuron-tools/timeline|neuron-tools(?:-front-ends)?)",\n\s*'
    r'"version"|"@neuron-tools/timeline"): "',
}


def current_version(root: Path) -> str:
    """The version in `pyproject.toml`."""
    match = re.search(r'^version = "(.+)"$', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def set_version(root: Path, old: str, new: str) -> None:
    """Replace one version by another in all places of a checkout."""
    for name, before in PLACES.items():
        text = (root / name).read_text()
        pattern = re.compile(f'({before}){re.escape(old)}"', re.MULTILINE)
        (root / name).write_text(pattern.sub(rf'\g<1>{new}"', text))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", sys.argv[1]):
        sys.exit("usage: python scripts/set_version.py MAJOR.MINOR.PATCH")
    set_version(ROOT, current_version(ROOT), sys.argv[1])
