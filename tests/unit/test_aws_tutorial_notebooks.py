"""A notebook becomes a script that keeps what the device and the CPU gave."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import aws_tutorial_notebooks
import aws_tutorials
from aws_tutorial_notebooks import PROLOGUE, keep_outputs, kept_outputs, script_of

CELLS = [
    ("markdown", "# A title\n"),
    ("code", "%env A=b #why\n!pip install \\\n  packages\nvalue = 1\n"),
    ("code", "%%time\nfor _ in range(2):\n    value += 1\n"),
    ("code", "%timeit f(value)"),
]
SCRIPT = """\
import os; os.environ['A'] = 'b'
# !pip install \\
#   packages
value = 1
# %%time
for _ in range(2):
    value += 1
f(value)
with torch.no_grad():
    keep_outputs([(value, 4)])
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    cells = [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in CELLS]
    file = tmp_path / "notebook.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    return file


def test_cells_are_one_script_without_commands(notebook: Path) -> None:
    assert script_of(notebook, {"value": "4"}) == PROLOGUE + SCRIPT


def test_outputs_are_kept_value_by_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = torch.tensor([[1.0, 2.0]]), torch.tensor([3])
    keep_outputs([((first, [second]), {"a": first, "b": second}), (second, second + 1)])
    device, cpu = kept_outputs(tmp_path)
    assert [values.tolist() for values in device] == [[1, 2, 3], [3]]
    assert [values.tolist() for values in cpu] == [[1, 2, 3], [4]]


@pytest.mark.parametrize(
    ("device", "passes"),
    [
        ((8.0, 0.0), True),
        ((8.0, 0.0007), True),
        ((8.0, 0.001), False),
        ((0.0, 8.0), False),
        ((8.0, float("nan")), False),
        ((8.0,), False),
    ],
)
def test_outputs_pass_within_a_share_of_the_largest(device: tuple[float, ...], passes: bool) -> None:
    assert aws_tutorials.Outcome("resnet50", ((8.0, 0.0),), (device,)).passed is passes


def test_each_output_is_held_against_its_own_largest() -> None:
    outcome = aws_tutorials.Outcome("resnet50", ((8000.0,), (1.0,)), ((8000.0,), (1.01,)))
    assert not outcome.passed
    assert str(outcome) == "outputs of 1, 1 values are apart by at most 0.0e+00, 1.0e-02 of the largest"


def test_a_line_that_continues_a_command_is_left_out_too() -> None:
    lines = aws_tutorial_notebooks._plain(["%pip a \\", "b \\", "c", "d"])
    assert [*lines] == ["# %pip a \\", "# b \\", "# c", "d"]
