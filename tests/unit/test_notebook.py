"""Notebooks run in a process of their own: cells are files to what looks at them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from neuron_tools.errors import UsageError
from neuron_tools.notebook import code_cells, main

WHERE = "import sys\nprint(sys._getframe().f_code.co_filename)"


def write(folder: Path, *cells: str, language: str = "python") -> Path:
    """A notebook with a text and cells."""
    text = {"cell_type": "markdown", "source": ["# Title"]}
    found = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path = folder / "train.ipynb"
    metadata = {"kernelspec": {"language": language}}
    path.write_text(json.dumps({"cells": [text, *found], "metadata": metadata, "nbformat": 4}))
    return path


def run(notebook: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("IPython")
    command = [sys.executable, "-m", "neuron_tools.notebook", str(notebook)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_each_cell_is_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    notebook = write(
        tmp_path / "deep", "x = 20", f"%pwd\nprint(x + 1)\n{WHERE}\nimport os\nprint(os.getcwd())"
    )
    answer = run(notebook, tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == ["21", f"{notebook}#2", str(tmp_path / "deep")]


def test_a_cell_that_fails_ends_it(tmp_path: Path) -> None:
    answer = run(write(tmp_path, "1 / 0", "print('behind')"), tmp_path)
    assert answer.returncode == 1
    assert "ZeroDivisionError" in answer.stdout + answer.stderr
    assert "behind" not in answer.stdout


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "is no notebook of version 4"),
        ('{"cells": [{"cell_type": "code"}]}', "is no notebook of version 4"),
        ("[]", "is no notebook of version 4"),
        ('{"cells": [], "metadata": {"kernelspec": {"language": "R"}}}', "is in R: only Python's notebooks"),
    ],
)
def test_what_is_no_notebook_of_pythons_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        code_cells(path)


def test_wrong_cells_are_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = write(tmp_path, "x = 1")
    assert main([str(notebook), "--cell", "1"]) == 2
    assert main([str(tmp_path / "none.ipynb")]) == 2
    told = capsys.readouterr().err
    assert "--cell needs the number of a code cell, from 1, and -o PROFILE." in told
    assert "none.ipynb cannot be read: No such file or directory." in told
    assert "Traceback" not in told
