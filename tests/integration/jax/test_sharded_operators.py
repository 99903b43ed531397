"""Sharded computations take device time, whatever they are made of."""

from __future__ import annotations

import sys

import pytest

from tests.integration.jax.captured_program import Captured, capture, run

pytest.importorskip("jax")

PROGRAM = """
import pathlib
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_enable_compilation_cache", True)
jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(__file__).parent / "cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.ones((64, 32), np.float32), NamedSharding(mesh, P("x")))

@jax.jit
def step(x):
    total = jnp.square(x).sum()
    smooth = jax.nn.gelu(x, approximate=False)
    largest = jax.lax.top_k(x, 3)
    ordered = jnp.sort(x, axis=0)
    sums = jnp.cumsum(x, axis=0)
    turned = jnp.abs(x + 1j * x)
    product = x @ x.T
    return product, total, smooth, largest, ordered, sums, turned

def body(part):
    return jax.lax.psum(jnp.square(part).sum(), "x")

whole = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P()))
print(float(step(x)[1]), float(whole(x)))
"""
WRITTEN = ("jnp.square(x)", "x @ x.T", "gelu", "top_k", "jnp.sort", "jnp.cumsum", "jnp.abs", "square(part)")


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """Captured when JAX's cache of compilations has all of it."""
    folder = tmp_path_factory.mktemp("sharded")
    script = folder / "sharded.py"
    script.write_text(PROGRAM)
    run([sys.executable, str(script)], folder)
    return capture(script, folder)


def test_each_operator_takes_time_at_its_line(captured: Captured) -> None:
    query = "SELECT DISTINCT source_line AS line FROM FrameworkInstruction"
    lines = {row["line"] for row in captured.profile.query(query).to_pylist()}
    assert {captured.line(text) for text in WRITTEN} <= lines


def test_nothing_is_left_out_or_guessed(captured: Captured) -> None:
    query = "SELECT message FROM Warning WHERE category <> 'values'"
    assert captured.profile.query(query).to_pylist() == []


def test_the_values_are_those_of_one_device(captured: Captured) -> None:
    assert captured.printed.split() == ["2048.0", "2048.0"]


def test_shard_map_itself_takes_no_time(captured: Captured) -> None:
    query = "SELECT DISTINCT framework_name AS name FROM FrameworkInstruction"
    ends = {str(row["name"]).rpartition("/")[2] for row in captured.profile.query(query).to_pylist()}
    assert "square" in ends
    assert "shard_map" not in ends
