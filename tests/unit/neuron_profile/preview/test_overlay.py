"""Imports that see an editor's text."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path

import pytest

from neuron_profile.preview.overlay import import_with, load
from neuron_tools.errors import UsageError


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for modules; imports are as before when the test has ended."""
    loader = importlib.machinery.SourceFileLoader
    monkeypatch.setattr(loader, "get_code", loader.get_code)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def test_texts_replace_what_stands_in_the_files(restored: Path) -> None:
    helper, kernels = restored / "previewed_helper.py", restored / "previewed_kernels.py"
    helper.write_text("WIDTH = 1\n")
    kernels.write_text("from previewed_helper import WIDTH\n")
    import_with({str(helper): "WIDTH = 2\n"})
    assert load("previewed_kernels", str(kernels)).WIDTH == 2


def test_modules_of_packages_are_imported_by_their_whole_names(restored: Path) -> None:
    package = restored / "previewed_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "sizes.py").write_text("WIDTH = 3\n")
    (package / "kernels.py").write_text("from .sizes import WIDTH\n")
    import_with({})
    assert load("previewed_package.kernels", str(package / "kernels.py")).WIDTH == 3


def test_of_a_script_only_definitions_run(restored: Path) -> None:
    script = restored / "previewed_script.py"
    script.write_text(
        "import math\n\ndef area(r):\n    return math.pi * r * SCALE\n\nSCALE = 2\nraise RuntimeError\n"
    )
    import_with({}, {str(script)})
    assert load("__main__", str(script)).area(1) == pytest.approx(6.2831853)


def test_a_file_that_is_gone_is_told_in_a_sentence(restored: Path) -> None:
    with pytest.raises(UsageError, match="open the folder that was captured"):
        load("previewed_gone", str(restored / "previewed_gone.py"))
