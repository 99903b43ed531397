"""The magic `%%neuron_profile` in IPython's own shell, as a notebook's kernel runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

import neuron_tools

pytest.importorskip("torch")
interactiveshell = pytest.importorskip("IPython.core.interactiveshell")

MODEL = """import torch
def layer(x, w):
    return torch.relu(x @ w)
"""
CELL = """x = torch.randn(64, 64, device="neuron")
out = layer(x, x).sum().item()
"""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = interactiveshell.InteractiveShell()
    made.run_line_magic("load_ext", "neuron_profile")
    yield made
    made.history_manager.end_session()


def test_a_cell_is_captured_with_its_lines_and_those_of_other_cells(shell, capsys):
    shell.run_cell(MODEL)
    shell.run_cell_magic("neuron_profile", "--host-clock fixed", CELL)
    printed = capsys.readouterr().out
    assert "Device time" in printed
    assert "Profile: cell.nprof" in printed
    with neuron_tools.open_profile("cell.nprof") as profile:
        rows = profile.sql("SELECT source_file, source_line FROM Frontier WHERE is_own").fetchall()
        texts = dict(profile.sql("SELECT path, text FROM SourceFile").fetchall())
    lines = {texts[file].splitlines()[line - 1].strip() for file, line in rows if texts.get(file)}
    assert "return torch.relu(x @ w)" in lines
    assert "out = layer(x, x).sum().item()" in lines
    assert "out" in shell.user_ns


def test_nothing_is_overwritten_and_wrong_options_are_a_sentence(shell, capsys):
    shell.run_cell(MODEL)
    shell.run_cell("%%neuron_profile -o run.nprof --host-clock fixed\n" + CELL)
    assert shell.run_cell("%%neuron_profile -o run.nprof\n" + CELL).error_in_exec is not None
    assert shell.run_cell("%%neuron_profile --nonsense\n" + CELL).error_in_exec is not None
    shown = capsys.readouterr()
    assert "The output folder run.nprof exists" in shown.out + shown.err
    assert "unrecognized arguments: --nonsense" in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err


def test_a_cell_that_fails_leaves_what_ran(shell, capsys, tmp_path):
    shell.run_cell(MODEL)
    shell.run_cell("%%neuron_profile\n" + CELL + "raise ValueError('planted')")
    assert "The cell failed: " in capsys.readouterr().out
    with neuron_tools.open_profile(tmp_path / "cell.nprof") as profile:
        assert profile.sql("SELECT count(*) FROM Instruction").fetchall()[0][0]


def test_cells_of_a_jupyter_kernel_keep_their_texts(tmp_path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [{"cell_type": "code", "id": f"c{number}", "metadata": {}, "execution_count": None, "outputs": [],
              "source": [text]} for number, text in enumerate((MODEL, CELL))]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    written = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "train.ipynb").write_text(json.dumps(written))
    command = [
        sys.executable,
        "-m",
        "neuron_profile.cli",
        "capture",
        "--host-clock",
        "fixed",
        "-o",
        "run.nprof",
        "--",
    ]
    for program in (["jupyter", "execute", "train.ipynb"], ["train.ipynb"]):
        subprocess.run([*command, *program], cwd=tmp_path, check=True, capture_output=True)
        with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
            rows = profile.sql("SELECT source_file, source_line FROM Frontier WHERE is_own").fetchall()
            texts = dict(profile.sql("SELECT path, text FROM SourceFile").fetchall())
        shutil.rmtree(tmp_path / "run.nprof")
        lines = {texts[file].splitlines()[line - 1].strip() for file, line in rows if texts.get(file)}
        assert {"return torch.relu(x @ w)", "out = layer(x, x).sum().item()"} <= lines
    assert str(tmp_path / "train.ipynb#2") in texts
