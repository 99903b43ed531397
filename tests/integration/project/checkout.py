"""The checkout under test: its root, its tracked files, and copies of its packages."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE_FOLDERS = (
    "neuron_tools",
    "profiler/neuron_profile",
    "explorer_ui/neuron_explorer",
    "monitor/neuron_monitor",
)


def tracked_files() -> list[Path]:
    """Files that git tracks and that are there; skips the test outside a git checkout."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def copy_packages(destination: Path, *, flat: bool) -> Path:
    """Copy the packages and what builds them: in their folders, or side by side (`flat`)."""
    for folder in PACKAGE_FOLDERS:
        target = destination / (Path(folder).name if flat else folder)
        shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, destination / name)
    return destination
