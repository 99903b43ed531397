"""JAX under capture: what a cached call costs, and whether JAX and PyTorch agree on the device's time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import neuron_tools
from benchmarks.figures import Figure, Target

ADDED_LIMIT_US = 100
AGREEMENT = 0.05
CALLS, QUICK_CALLS, REPEATS = 2000, 500, 5

JAX_MLP = """
import jax, jax.numpy as jnp
def mlp(x, w1, b1, w2, b2):
    return jax.nn.gelu(x @ w1 + b1) @ w2 + b2
keys = jax.random.split(jax.random.key(0), 5)
shapes = [(1024, 1024), (1024, 4096), (4096,), (4096, 1024), (1024,)]
values = [jax.random.normal(key, shape, jnp.bfloat16) for key, shape in zip(keys, shapes)]
jax.jit(mlp)(*values).block_until_ready()
"""
TORCH_MLP = """
import torch
mlp = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.GELU(approximate="tanh"), torch.nn.Linear(4096, 1024)
).to("neuron", torch.bfloat16)
x = torch.randn(1024, 1024, dtype=torch.bfloat16).to("neuron")
with torch.no_grad():
    torch.compile(mlp)(x)
torch.neuron.synchronize()
"""


def run(quick: bool) -> list[Figure]:
    """Measures both."""
    plain_us, captured_us = cached_call_us(QUICK_CALLS if quick else CALLS)
    jax_us, torch_us = mlp_device_us(JAX_MLP), mlp_device_us(TORCH_MLP)
    return [
        Figure(
            "host time added to a cached call",
            captured_us - plain_us,
            "us",
            Target("<=", ADDED_LIMIT_US, "python"),
            note=f"CPU time, {plain_us:.1f} us plain, {captured_us:.1f} us recorded; outside virtual time",
        ),
        Figure(
            "two-layer MLP, bf16: difference between JAX and PyTorch",
            abs(jax_us / torch_us - 1),
            "of PyTorch's time",
            Target("<=", AGREEMENT),
            note=f"simulated: JAX {jax_us:.1f} us, PyTorch {torch_us:.1f} us",
        ),
    ]


def cached_call_us(calls: int) -> tuple[float, float]:
    """CPU time of one cached call, plain and recorded: the least of some repeats."""
    import jax
    import jax.numpy as jnp

    function, x = jax.jit(lambda x: x + 1), jnp.ones(16)

    def one() -> None:
        function(x).block_until_ready()

    plain = _per_call_us(one, calls)
    with tempfile.TemporaryDirectory() as folder, _recorded(Path(folder)):
        recorded = _per_call_us(one, calls)
    return plain, recorded


def _recorded(folder: Path) -> Any:
    from contextlib import contextmanager

    from neuron_tools.capture.options import CaptureOptions
    from neuron_tools.capture.runtimes.jax_runtime import JaxRuntime
    from neuron_tools.capture.session import CaptureSession

    @contextmanager
    def recorded() -> Any:
        session = CaptureSession(CaptureOptions(folder / "run.nprof"), JaxRuntime())
        session.start()
        try:
            yield
        finally:
            session.stop()

    return recorded()


def _per_call_us(function: Callable[[], None], calls: int) -> float:
    from neuron_tools.device.driver.runtime import host_driver

    function()
    host_driver.flush()  # the first call makes the simulated driver's tree, once
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        for _ in range(calls):
            function()
        times.append((time.process_time() - start) / calls * 1e6)
    return min(times)


def mlp_device_us(program: str) -> float:
    """Device time of the last execution of a program, captured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "mlp.py"
        script.write_text(program)
        profile = Path(folder) / "mlp.nprof"
        command = ["-m", "neuron_profile.cli", "capture", "-o", str(profile), "--host-clock", "fixed", "--"]
        subprocess.run(
            [sys.executable, *command, sys.executable, str(script)],
            check=True,
            capture_output=True,
            cwd=folder,
        )
        with neuron_tools.open_profile(profile) as opened:
            duration = "execution_end_ts - execution_start_ts"
            query = f"SELECT arg_max({duration}, execution_start_ts) FROM ExecutionInfo"
            (row,) = opened.query(query).to_pylist()
        return float(next(iter(row.values()))) / 1000
