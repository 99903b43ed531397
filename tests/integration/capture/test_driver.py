"""The simulated driver's counters of a captured run equal what its profile says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from neuron_tools.profile.reader import Profile
from tests.integration.capture.programs import TRAIN, Folder

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
COMPILED = TRAIN + "fused = torch.compile(model, backend='neuron')\nfor _ in range(3): fused(inputs)\n"
EAGER = TRAIN + "step(); step()\n"

JAX = """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: jnp.tanh(x @ x.T).sum())
for size in (64, 96, 64):
    step(jnp.ones((size, 64)))
jax.effects_barrier()
"""
NKI = """
import numpy as np
import nki, nki.language as nl, nki.isa as nisa

@nki.jit
def double(source):
    result = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=result, src=tile)
    return result

for _ in range(3):
    double(np.ones((128, 512), np.float32))
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree that stays when the program has ended."""
    from neuron_tools.device.driver.__main__ import load

    root = tmp_path / "sysfs"
    monkeypatch.setenv("NEURON_SYSFS_ROOT", str(root))
    load(root, "trn2")
    return root


@pytest.mark.parametrize(
    "program", [EAGER, pytest.param(COMPILED, marks=pytest.mark.slow)], ids=["eager", "compiled"]
)
def test_the_counters_of_a_captured_run_equal_its_profile(folder: Folder, root: Path, program: str) -> None:
    folder.capture(program)
    counted_as_in_the_profile(folder.profile(), root)
    stats = root / "neuron0/neuron_core0/stats"
    assert int((stats / "other_info/flop_count/total").read_text()) > 0
    assert (stats / "memory_usage/device_mem/tensors/present").read_text() == "0\n"
    assert int((stats / "memory_usage/device_mem/tensors/peak").read_text()) > 0
    assert json.loads((root / "driver.json").read_text())["stays"]


@pytest.mark.parametrize("program", [JAX, pytest.param(NKI, marks=pytest.mark.slow)], ids=["jax", "nki"])
def test_programs_without_pytorch_are_counted_too(folder: Folder, root: Path, program: str) -> None:
    folder.capture(program)
    counted_as_in_the_profile(folder.profile(), root)


def counted_as_in_the_profile(profile: Profile, root: Path) -> None:
    """Assert that core 0's counters are those of the profile, and that the process is gone."""
    summary = profile.summary()
    stats = root / "neuron0/neuron_core0/stats"

    def total(path: str) -> int:
        return int((stats / path / "total").read_text())

    ((count, busy_ns),) = profile.sql(
        "SELECT count(*), CAST(sum(execution_end_ts - execution_start_ts) AS BIGINT) FROM ExecutionInfo"
    ).fetchall()
    assert total("other_info/inference_count") == total("status/success") == count > 0
    assert total("other_info/nc_time_in_use") == busy_ns // 1000
    assert total("other_info/flop_count") == summary["hardware_flops"]
    assert total("traffic/hbm_read_bytes") == summary["hbm_read_bytes"] > 0
    assert total("traffic/hbm_write_bytes") == summary["hbm_write_bytes"] > 0
    assert total("traffic/dma_bytes") == summary["dma_transfer_total_bytes"] > 0
    active_ns = [round(summary[f"{engine}_engine_active_time"] * 1e9) for engine in ENGINES]
    assert [total(f"engine_busy_ns/{engine}") for engine in ENGINES] == active_ns
    latencies = [(stats / "latency" / kind).read_text().split() for kind in ("device", "total")]
    assert [sum(map(int, lines[1::2])) for lines in latencies] == [count] * 2
    assert total("clock/elapsed_ns") >= busy_ns
    assert os.listdir(root / "processes") == []
