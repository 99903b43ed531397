"""Collectives of JAX programs tell operation, module and line, as those of PyTorch do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.jax.captured_program import Captured, capture

pytest.importorskip("jax")

START = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("x",))
x = jnp.arange(64.0 * 64).reshape(64, 64) / 4096
"""
SHARD_MAP = """
def block(part):
    with jax.named_scope("mlp"):
        whole = jax.lax.all_gather(part, "x", tiled=True)
        total = jax.lax.psum(part @ whole, "x")
    return jax.lax.psum_scatter(jnp.sin(total), "x", scatter_dimension=0, tiled=True)

@jax.jit
def step(x):
    return jax.shard_map(block, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)

step(x).block_until_ready()
"""
PMAP = """
@partial(jax.pmap, axis_name="x")
def step(part):
    with jax.named_scope("mean"):
        return part - jax.lax.pmean(part, "x")

step(x.reshape(4, 16, 64)).block_until_ready()
"""
SHARDED_JIT = """
rows, columns = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "x"))

def model(weight, x):
    with jax.named_scope("up"):
        hidden = jnp.tanh(x @ weight)
    with jax.named_scope("down"):
        return (hidden @ weight.T).sum()

step = jax.jit(jax.value_and_grad(model))
step(jax.device_put(x, columns), jax.device_put(x, rows))[0].block_until_ready()
"""
QUERY = """
SELECT DISTINCT operation, framework_name AS name, layer, source_file AS file, source_line AS line
FROM CcOp ORDER BY operation, name
"""


def _collectives(tmp_path: Path, text: str) -> tuple[Captured, list[dict[str, object]]]:
    script = tmp_path / "sharded.py"
    script.write_text(START + text)
    captured = capture(script, tmp_path)
    rows = captured.profile.query(QUERY).to_pylist()
    assert rows
    assert {row["file"] for row in rows} == {str(script)}
    return captured, rows


def test_those_that_shard_map_writes(tmp_path: Path) -> None:
    captured, rows = _collectives(tmp_path, SHARD_MAP)
    told = [(row["operation"], row["layer"], row["line"]) for row in rows]
    assert told == [
        ("AllGather", "/step/mlp", captured.line("lax.all_gather")),
        ("AllReduce", "/step/mlp", captured.line("lax.psum(")),
        ("ReduceScatter", "/step", captured.line("lax.psum_scatter")),
    ]
    names = [str(row["name"]).removesuffix("_invariant") for row in rows]
    ends = ("mlp/all_gather", "mlp/psum", "reduce_scatter")
    assert [name.endswith(f"/{end}") for name, end in zip(names, ends, strict=True)] == [True] * 3


def test_those_of_pmap(tmp_path: Path) -> None:
    captured, rows = _collectives(tmp_path, PMAP)
    told = [(row["operation"], row["line"]) for row in rows]
    assert told == [("AllReduce", captured.line("lax.pmean"))]
    assert str(rows[0]["layer"]).endswith("/mean")


def test_those_that_shardings_ask_for(tmp_path: Path) -> None:
    captured, rows = _collectives(tmp_path, SHARDED_JIT)
    lines = {captured.line("x @ weight"), captured.line("weight.T")}
    assert {row["line"] for row in rows} <= lines
    assert all(str(row["layer"]).startswith("/model/") and row["name"] for row in rows)
