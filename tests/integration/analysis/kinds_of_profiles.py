"""Profiles of every kind, made by the tools themselves: captures, and imported traces of other tools."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import training_trace
from neuron_tools.profile.importers import import_traces
from tests.fixtures.foreign_traces import device_profile

EXAMPLES = Path(__file__).parents[3] / "examples"
TIMEOUT_S = 300
TRANSFORMER = """
import torch

torch.manual_seed(0)
model = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to("neuron")
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.ones(2, 16, 64).to("neuron")
for _ in range(3):
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""
TORCH_PROFILER = """
import torch
from torch.profiler import ProfilerActivity, profile

layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
with profile(activities=[ProfilerActivity.CPU], with_stack=True) as run:
    for _ in range(3):
        layer(torch.ones(2, 16, 64)).square().mean().backward()
run.export_chrome_trace("trace.json")
"""


def _run(folder: Path, *command: str) -> None:
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def _captured(folder: Path, script: Path) -> Path:
    options = ("-o", "run.nprof", "--host-clock", "fixed")
    _run(
        folder,
        sys.executable,
        "-m",
        "neuron_profile.cli",
        "capture",
        *options,
        "--",
        sys.executable,
        str(script),
    )
    return folder / "run.nprof"


def transformer(folder: Path) -> Path:
    """Training steps in PyTorch, operator by operator."""
    script = folder / "transformer.py"
    script.write_text(TRANSFORMER)
    return _captured(folder, script)


def nki_kernel(folder: Path) -> Path:
    """A kernel on its own."""
    return _captured(folder, EXAMPLES / "nki" / "softmax.py")


def jax_program(folder: Path) -> Path:
    """Jitted training steps."""
    return _captured(folder, EXAMPLES / "jax" / "train_mlp.py")


def host_trace(folder: Path) -> Path:
    """What torch.profiler writes of a host without a device, Python functions among it."""
    (folder / "program.py").write_text(TORCH_PROFILER)
    _run(folder, sys.executable, "program.py")
    import_traces([str(folder / "trace.json")], folder / "run.nprof")
    return folder / "run.nprof"


def gpu_trace(folder: Path) -> Path:
    """What torch.profiler writes of a GPU with two streams and collectives."""
    training_trace.write(folder / "trace.json", 5_000)
    import_traces([str(folder / "trace.json")], folder / "run.nprof")
    return folder / "run.nprof"


def device(folder: Path) -> Path:
    """A profile of the device alone in AWS's JSON."""
    (folder / "device.json").write_text(json.dumps(device_profile()))
    import_traces([str(folder / "device.json")], folder / "run.nprof")
    return folder / "run.nprof"


MAKERS: dict[str, Callable[[Path], Path]] = {
    "transformer": transformer,
    "nki_kernel": nki_kernel,
    "jax_program": jax_program,
    "host_trace": host_trace,
    "gpu_trace": gpu_trace,
    "device": device,
}
CAPTURES = ("transformer", "nki_kernel", "jax_program")
