"""`neuron-profile capture` of the example that registers a kernel as a PyTorch operator with a gradient."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.verify import verify

pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[3] / "examples" / "nki" / "torch_operator.py"
MODES, TILES = 2, 2


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    folder = tmp_path_factory.mktemp("operator")
    command = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", "run.nprof"]
    command += ["--host-clock", "fixed", "--", sys.executable, str(EXAMPLE)]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return neuron_tools.open_profile(folder / "run.nprof")


def line(text: str) -> int:
    """Number of the example's first line that contains a text."""
    return 1 + next(at for at, line in enumerate(EXAMPLE.read_text().splitlines()) if text in line)


def column(profile: Profile, query: str) -> list[object]:
    return [next(iter(row.values())) for row in profile.query(query).to_pylist()]


def test_kernels_and_operators_are_in_one_process(profile: Profile):
    assert column(profile, "SELECT count(*) FROM ProcessInfo") == [1]
    assert list(verify(profile)) == []
    assert column(profile, "SELECT message FROM Warning") == []


def test_the_kernel_is_one_operation_with_its_instructions_below(profile: Profile):
    query = (
        "SELECT hlo_name, count(*) AS rows FROM Instruction WHERE kernel_instruction_name IS NOT NULL "
        "GROUP BY hlo_name ORDER BY hlo_name"
    )
    found = {row["hlo_name"]: row["rows"] for row in profile.query(query).to_pylist()}
    # Forward and backward each: on their own in eager mode, inside the compiled graphs in the other.
    assert set(found) == {"nki_kernel.sine_kernel", "nki_kernel.sine_kernel.0"}
    assert found["nki_kernel.sine_kernel"] == found["nki_kernel.sine_kernel.0"]
    others = (
        "SELECT count(*) FROM Instruction WHERE hlo_name NOT LIKE 'nki%' AND nki_source_location IS NOT NULL"
    )
    assert column(profile, others) == [0]


def test_every_instruction_of_the_kernel_has_its_line(profile: Profile):
    inside = "FROM Instruction WHERE hlo_name LIKE 'nki%'"
    query = f"SELECT DISTINCT nki_source_location {inside} AND opcode = 'ACTIVATE'"
    assert column(profile, query) == [f"{EXAMPLE}:{line('op=nl.sin')}"]
    missing = f"SELECT count(*) {inside} AND nki_source_location IS NULL"
    assert column(profile, missing) == [0]


def test_loop_variables_are_known_in_the_compiled_graph_too(profile: Profile):
    query = (
        "SELECT v.variable_value, count(*) FROM Instruction i "
        "JOIN KernelInstructions k USING (kernel_instruction_name) "
        "JOIN KernelIterationVariables v ON k.iteration_variables_id = v.iteration_variable_id "
        "WHERE i.opcode = 'ACTIVATE' AND i.hlo_name LIKE 'nki%' GROUP BY ALL ORDER BY 1"
    )
    assert profile.query(query).to_pylist() == [
        {"variable_value": tile, "count_star()": 2 * MODES} for tile in range(TILES)
    ]


def test_the_framework_operation_is_the_registered_operator_when_compiled(profile: Profile):
    query = (
        "SELECT DISTINCT framework_name FROM FrameworkInstruction "
        "WHERE framework_name LIKE '%sine%' ORDER BY 1"
    )
    names = column(profile, query)
    assert {"nki::sine_kernel", "neuron_examples::sine", "neuron_examples::sine_backward"} <= set(names)


def test_backward_kernels_stand_at_the_forward_call_eager_and_compiled(profile: Profile):
    columns = "hlo_name, layer, is_backward"
    query = f"SELECT DISTINCT {columns} FROM Instruction WHERE hlo_name LIKE 'nki%' ORDER BY ALL"
    found = [tuple(row.values()) for row in profile.query(query).to_pylist()]
    assert found == [
        ("nki_kernel.sine_kernel", "/sine()", False),
        ("nki_kernel.sine_kernel", "/sine()", True),
        ("nki_kernel.sine_kernel.0", "/loss_of()", False),
        ("nki_kernel.sine_kernel.0", "/loss_of()", True),
    ]
