"""The checkout or source archive under test: its root, its files, and copies of its packages."""

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
    """The project's files, without what is built: those that git tracks, or that a source archive lists.

    Skips the test where neither says what belongs to the project.
    """
    if (ROOT / "PKG-INFO").is_file():
        names = _archived_names()
    else:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
        if listed.returncode != 0:
            pytest.skip("neither a git checkout nor a source archive")
        names = listed.stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def _archived_names() -> list[str]:
    """What the source archive's own list names, but for what was made for it."""
    names = (ROOT / "neuron_tools.egg-info/SOURCES.txt").read_text().splitlines()
    made = ("neuron_tools.egg-info/", "explorer_ui/neuron_explorer/timeline/static/")
    return [name for name in names if name not in ("PKG-INFO", "setup.cfg") and not name.startswith(made)]


def copy_packages(destination: Path, *, flat: bool) -> Path:
    """Copy the packages and what builds them: in their folders, or side by side (`flat`)."""
    for folder in PACKAGE_FOLDERS:
        target = destination / (Path(folder).name if flat else folder)
        shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, destination / name)
    return destination
