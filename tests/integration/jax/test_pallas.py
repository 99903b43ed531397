"""Pallas kernels in captured programs: refused with what to do, recorded where they are interpreted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.jax.captured_program import capture

pytest.importorskip("jax.experimental.pallas")

PROGRAM = """
import sys
import jax, jax.numpy as jnp
from jax.experimental import pallas

def add(x, y, out):
    out[...] = x[...] + y[...]

shape = jax.ShapeDtypeStruct((128, 128), jnp.float32)
kernel = pallas.pallas_call(add, out_shape=shape, interpret="--interpret" in sys.argv)
ones = jnp.ones((128, 128))
print(float(jax.jit(kernel)(ones, ones).sum()))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(PROGRAM)
    return path


def test_a_kernel_is_refused_with_what_to_do(script: Path) -> None:
    start = [sys.executable, "-m", "neuron_profile.cli", "capture", "-o", "run.nprof", "--"]
    command = [*start, sys.executable, str(script)]
    answer = subprocess.run(command, cwd=script.parent, capture_output=True, text=True)
    assert answer.returncode == 1
    assert "NKI" in answer.stderr
    assert "interpret=True" in answer.stderr


def test_an_interpreted_one_is_recorded(script: Path) -> None:
    captured = capture(script, script.parent, "--interpret")
    assert captured.printed.splitlines()[0] == "32768.0"
    assert captured.share(f"source_line = {captured.line('x[...] + y[...]')}") > 0
