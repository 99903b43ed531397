"""What a recording of JAX holds beside the executions, and where it starts and ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import neuron_tools
from neuron_tools.profile.verify import verify
from tests.integration.jax.captured_program import Captured, capture, run

pytest.importorskip("jax")

STEPS = """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: jnp.tanh(x @ x) / 8)
x = jnp.ones((256, 256))
for number in range(3):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        with jax.profiler.TraceAnnotation("compute"):
            x = step(x)
        print(float(x[0, 0]))
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("steps")
    script = folder / "steps.py"
    script.write_text(STEPS)
    return capture(script, folder, options=["--host-clock", "fixed"])


def spans(captured: Captured, kind: str) -> list[str]:
    query = f"SELECT name FROM HostSpan WHERE kind = '{kind}' ORDER BY start_ts"
    return [row["name"] for row in captured.profile.query(query).to_pylist()]


def test_annotations_are_ranges_and_steps(steps: Captured) -> None:
    assert spans(steps, "step") == ["train 0", "train 1", "train 2"]
    assert spans(steps, "range") == ["compute"] * 3


def test_the_host_waits_for_the_value_it_prints(steps: Captured) -> None:
    waits = steps.scalar("SELECT count(*) FROM HostSpan WHERE kind = 'synchronize'")
    assert waits == 3
    (last,) = steps.profile.query(
        "SELECT max(execution_end_ts) AS device, (SELECT max(end_ts) FROM HostSpan) AS host"
        " FROM ExecutionInfo"
    ).to_pylist()
    assert last["host"] >= last["device"]


def test_each_call_runs_what_was_compiled_once(steps: Captured) -> None:
    query = "SELECT name, execution_count FROM Executable WHERE name LIKE 'jit%lambda%'"
    assert [row["execution_count"] for row in steps.profile.query(query).to_pylist()] == [3]


def test_two_captures_with_the_fixed_clock_are_equal(steps: Captured, tmp_path: Path) -> None:
    again = capture(steps.script, tmp_path, options=["--host-clock", "fixed"])
    for table in ("Instruction", "HostSpan", "ExecutionInfo", "FrameworkInstruction"):
        assert again.profile.arrow(table).equals(steps.profile.arrow(table)), table


def test_the_profile_says_where_the_values_come_from(steps: Captured) -> None:
    query = "SELECT message FROM Warning WHERE category = 'values'"
    (warning,) = steps.profile.query(query).to_pylist()
    assert "CPU devices" in warning["message"]


def test_nothing_is_said_of_jax_where_a_program_only_imports_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "imports.py"
    script.write_text("import jax, torch\nprint(float((torch.ones(4, device='neuron') + 1).sum()))\n")
    captured = capture(script, tmp_path)
    assert captured.printed.strip() == "8.0"
    assert captured.profile.query('SELECT message FROM "Warning"').to_pylist() == []


def test_a_platform_asked_for_by_name_is_there(tmp_path: Path) -> None:
    script = tmp_path / "by_name.py"
    script.write_text(
        "import jax, jax.numpy as jnp\n"
        "device = jax.devices('neuron')[0]\n"
        "x = jax.device_put(jnp.ones((128, 128)), device)\n"
        "print(float(jax.jit(lambda x: (x @ x).sum())(x)))\n"
    )
    captured = capture(script, tmp_path)
    assert captured.printed.startswith("2097152.0")
    assert captured.scalar("SELECT count(*) FROM Instruction WHERE opcode LIKE '%MATMUL%'") > 0
    assert list(verify(captured.profile)) == []


INLINE = """
import jax, jax.numpy as jnp, neuron_tools
step = jax.jit(lambda x: jnp.tanh(x @ x))
x = jnp.ones((128, 128))
before = step(x)
with neuron_tools.profile("run.nprof") as run:
    inside = step(x)
after = step(x)
assert (before == inside).all() and (inside == after).all()
print(run.summary()["total_time"] > 0)
"""


def test_a_block_of_a_program_records_itself(tmp_path: Path) -> None:
    (tmp_path / "inline.py").write_text(INLINE)
    assert run([sys.executable, "inline.py"], tmp_path).split() == ["True"]
    with neuron_tools.open_profile(tmp_path / "run.nprof") as profile:
        assert list(verify(profile)) == []
        (row,) = profile.query("SELECT count(*) AS n FROM ExecutionInfo").to_pylist()
        assert row["n"] == 1
