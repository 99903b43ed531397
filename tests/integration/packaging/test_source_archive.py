"""The source archive alone, unpacked outside any checkout: its tests are found, those of its files pass."""

import os
import subprocess
import sys

import pytest

from tests.integration.project.checkout import ROOT, tracked_files

SOURCE_FOLDERS = ("", "profiler", "explorer_ui", "monitor")
OF_FILES = [
    "tests/integration/packaging/test_versions.py",
    "tests/integration/project/test_constraints.py",
    "tests/integration/project/test_docs.py",
    "tests/integration/project/test_imports.py",
    "tests/integration/project/test_layers.py",
    "tests/integration/project/test_tracked_files.py",
]


def run_pytest(unpacked, *arguments):
    """Run pytest in the unpacked archive, with its packages before those that are installed."""
    paths = os.pathsep.join(str(unpacked / folder) for folder in SOURCE_FOLDERS)
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GIT_"))}
    return subprocess.run(
        command, cwd=unpacked, env={**kept, "PYTHONPATH": paths}, capture_output=True, text=True
    )


@pytest.mark.slow
def test_every_test_is_found_there(unpacked):
    result = run_pytest(unpacked, "--collect-only", "tests")
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    found = {line.split("::")[0] for line in result.stdout.splitlines() if "::" in line}
    names = {str(path.relative_to(ROOT)) for path in tracked_files() if path.name.startswith("test_")}
    tests = {name for name in names if name.startswith("tests/") and name.endswith(".py")}
    assert tests <= found


@pytest.mark.slow
def test_tests_of_the_projects_files_pass_there_and_skip_none(unpacked):
    result = run_pytest(unpacked, *OF_FILES)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    assert "skipped" not in result.stdout
