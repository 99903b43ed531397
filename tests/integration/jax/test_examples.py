"""The examples run unchanged, with the same values as without capture, and their lines get the time."""

from __future__ import annotations

import sys

import pytest

from neuron_tools.profile.verify import verify
from tests.integration.jax.captured_program import EXAMPLES, Captured, capture, run

pytest.importorskip("jax")

SMALL = {"train_transformer": ("--layers", "1", "--width", "64", "--length", "32", "--steps", "2")}
SLOW = {"train_nnx", "train_rnn", "train_transformer", "custom_gradient"}
# Text of a line of each example, and what part of the device time it gets at least.
HOT_LINES = {
    "train_mlp": "jax.nn.gelu(x @",
    "train_transformer": "mixed = jnp.einsum",
    "train_rnn": "state = jnp.tanh",
    "sharded_matmul": "return (a @ b).sum",
    "custom_gradient": "jnp.sin(clipped(x @ w))",
    "kernel_in_jit": "return jax.value_and_grad",
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in sorted(EXAMPLES.glob("*.py"))
    ],
)
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    name = request.param
    script, folder = EXAMPLES / f"{name}.py", tmp_path_factory.mktemp(name)
    result = capture(script, folder, *SMALL.get(name, ()))
    assert result.printed.startswith(
        run([sys.executable, str(script), *SMALL.get(name, ())], folder).rstrip()
    )
    return result


def test_nothing_is_refused_and_no_rule_is_broken(captured: Captured) -> None:
    assert list(verify(captured.profile)) == []
    warnings = captured.profile.query("SELECT message FROM Warning WHERE category = 'compiler'").to_pylist()
    assert warnings == []
    assert captured.scalar("SELECT count(*) FROM Instruction") > 0


def test_almost_all_device_time_has_a_user_line(captured: Captured) -> None:
    assert captured.share("source_file IS NOT NULL AND source_line > 0") >= 0.98
    ours = "contains(source_file, '/neuron_tools/') OR contains(source_file, '/jax/_src/')"
    assert captured.share(ours) == 0


def test_the_lines_are_those_of_the_file(captured: Captured) -> None:
    text = HOT_LINES.get(captured.script.stem)
    if text is None:  # all of it in a library
        pytest.skip("its own lines only call a library")
    line = captured.line(text)
    at_line = f"source_file = '{captured.script}' AND source_line = {line}"
    assert captured.share(at_line) > 0.02
    operations = captured.scalar(f"SELECT count(*) FROM FrameworkInstruction WHERE {at_line}")
    assert operations > 0
    code = captured.script.read_text().splitlines()
    rows = captured.profile.query(
        f"SELECT DISTINCT source_line FROM FrameworkInstruction WHERE source_file = '{captured.script}'"
    ).to_pylist()
    assert all(code[row["source_line"] - 1].strip() for row in rows)
