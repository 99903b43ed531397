import os
import subprocess
import sys

import pytest

from tests.integration.project.checkout import ROOT


@pytest.fixture
def bare_path(tmp_path):
    """A PATH with the few commands that the script itself calls, and nothing of the machine's else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "env", "id"):
        (folder / name).symlink_to(next(p for p in (f"/usr/bin/{name}", f"/bin/{name}") if os.path.exists(p)))
    return folder


def bootstrap(path, tmp_path, **environment):
    return subprocess.run(
        ["bash", ROOT / "scripts/bootstrap.sh", "runtime"],
        env={"PATH": str(path), "VENV": str(tmp_path / "venv"), **environment},
        capture_output=True,
        text=True,
    )


def test_without_python_and_apt_it_names_what_is_missing(bare_path, tmp_path):
    result = bootstrap(bare_path, tmp_path)
    assert result.returncode == 1
    assert "lacks python3" in result.stderr
    assert not (tmp_path / "venv").exists()


def test_an_unusable_python_that_was_asked_for_is_not_replaced(bare_path, tmp_path):
    result = bootstrap(bare_path, tmp_path, PYTHON="no-such-python")
    assert result.returncode == 1
    assert "PYTHON=no-such-python is not a Python 3.10 to 3.13" in result.stderr


def test_a_missing_compiler_is_named_with_the_command_that_installs_it(bare_path, tmp_path):
    for name, text in {"apt-get": "exit 1", "id": "echo 1000"}.items():
        (bare_path / name).unlink(missing_ok=True)
        (bare_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (bare_path / name).chmod(0o755)
    result = bootstrap(bare_path, tmp_path, PYTHON=sys.executable)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "sudo apt-get install -y" in result.stderr
    assert "g++" in result.stderr


def test_unknown_words_are_refused(bare_path, tmp_path):
    result = subprocess.run(
        ["bash", ROOT / "scripts/bootstrap.sh", "everything"], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "usage" in result.stderr
