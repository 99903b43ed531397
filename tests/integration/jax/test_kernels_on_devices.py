"""NKI kernels inside `shard_map`: each device runs the kernel's own instructions on its shard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.jax.captured_program import capture

pytest.importorskip("jax")

SHARDED = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec
from neuron_tools import compat
compat.install()
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(x):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=result, src=tile)
    return result

mesh = Mesh(np.array(jax.devices()), ("rows",))
rows = PartitionSpec("rows")
step = jax.jit(jax.shard_map(lambda x: double(x) + 1, mesh=mesh, in_specs=rows, out_specs=rows))
x = jnp.arange(256.0 * 16).reshape(256, 16)
np.testing.assert_array_equal(step(x), 2 * x + 1)
"""


def test_each_device_runs_the_kernel_on_its_shard(tmp_path: Path) -> None:
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED)
    captured = capture(script, tmp_path)
    line = captured.line("nisa.tensor_scalar")
    query = (
        "SELECT pcore_idx AS core, count(*) AS instructions FROM Instruction"
        f" WHERE nki_source_location LIKE '%sharded.py:{line}' GROUP BY core ORDER BY core"
    )
    assert captured.profile.query(query).to_pylist() == [
        {"core": 0, "instructions": 1},
        {"core": 1, "instructions": 1},
    ]
