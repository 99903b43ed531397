"""`neuron-profile capture` of a script that calls NKI kernels on NumPy arrays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_tools.profile.reader import Profile

SCRIPT = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


def load(source, row):
    tile = nl.ndarray((128, 256), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source[row * 128 : (row + 1) * 128, :])
    return tile


@nki.jit
def add(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for row in nl.affine_range(a.shape[0] // 128):
        total = load(a, row)
        nisa.tensor_tensor(dst=total, data1=total, data2=load(b, row), op=nl.add)
        nisa.dma_copy(dst=out[row * 128 : (row + 1) * 128, :], src=total)
    return out


x = np.arange(3 * 128 * 256, dtype=np.float32).reshape(384, 256)
for _ in range(2):
    assert np.array_equal(add(x, x), x + x)
"""
ROWS, CALLS_PER_ROW = 3, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory in which the script was captured."""
    folder = tmp_path_factory.mktemp("nki")
    (folder / "kernel.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", "run.nprof", "--", sys.executable]
    answer = subprocess.run([*command, "kernel.py"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder


@pytest.fixture(scope="module")
def profile(folder: Path) -> Profile:
    """Its profile."""
    return neuron_tools.open_profile(folder / "run.nprof")


def line(text: str) -> int:
    """Number of the script's line that contains a text."""
    return 1 + next(at for at, line in enumerate(SCRIPT.splitlines()) if text in line)


def rows(profile: Profile, query: str) -> list[dict[str, Any]]:
    """Rows of a query."""
    found: list[dict[str, Any]] = profile.query(query).to_pylist()
    return found


def test_every_instruction_has_its_line_in_the_kernel(profile: Profile, folder: Path):
    found = rows(profile, "SELECT DISTINCT nki_source_location AS place FROM Instruction")
    lines = {line("src=source["), line("nisa.tensor_tensor("), line("dst=out[")}
    assert {row["place"] for row in found} == {f"{folder / 'kernel.py'}:{number}" for number in lines}


def test_a_transfer_has_the_line_of_the_kernel_that_triggers_it(profile: Profile, folder: Path):
    found = rows(profile, "SELECT DISTINCT source_file AS file, source_line AS line FROM DmaPacketAggregated")
    lines = {(row["file"], row["line"]) for row in found}
    assert lines == {(str(folder / "kernel.py"), line(text)) for text in ("src=source[", "dst=out[")}


def test_calls_are_listed_once_with_their_stacks(profile: Profile):
    calls = rows(profile, "SELECT * FROM KernelInstructions")
    assert len(calls) == ROWS * CALLS_PER_ROW
    depths = {(row["line_number"], row["stack_frame_depth"]) for row in calls}
    assert depths == {(line("src=source["), 2), (line("nisa.tensor_tensor("), 1), (line("dst=out["), 1)}


def test_stacks_lead_from_the_instruction_to_the_kernel(profile: Profile):
    frames = {row["stack_frame_id"]: row for row in rows(profile, "SELECT * FROM KernelStackFrames")}
    (call,) = rows(
        profile,
        f"SELECT * FROM KernelInstructions WHERE line_number = {line('src=source[')} "
        "ORDER BY kernel_instruction_name LIMIT 1",
    )
    inner = frames[call["stack_frame_id"]]
    outer = frames[inner["parent_stack_frame_id"]]
    assert (inner["line_number"], outer["parent_stack_frame_id"]) == (line("src=source["), None)
    assert outer["line_number"] in (line("total = load(a"), line("data2=load(b"))


def test_loop_variables_have_their_values(profile: Profile):
    found = rows(
        profile,
        "SELECT i.kernel_instruction_name, v.variable_name, v.variable_value FROM KernelInstructions i "
        "JOIN KernelIterationVariables v ON i.iteration_variables_id = v.iteration_variable_id "
        f"WHERE i.line_number = {line('dst=out[')} ORDER BY v.variable_value",
    )
    assert [(row["variable_name"], row["variable_value"]) for row in found] == [
        ("row", n) for n in range(ROWS)
    ]


def test_instructions_name_their_calls(profile: Profile):
    (count,) = rows(
        profile,
        "SELECT count(*) AS named FROM Instruction WHERE kernel_instruction_name IN "
        "(SELECT kernel_instruction_name FROM KernelInstructions)",
    )
    (total,) = rows(profile, "SELECT count(*) AS every FROM Instruction")
    assert count["named"] == total["every"] > 0


def test_the_profile_is_valid(folder: Path):
    command = [sys.executable, "-m", "neuron_profile.cli", "verify", "run.nprof"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr
