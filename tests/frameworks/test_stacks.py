"""Training stacks by their own interfaces: on the device, captured or not, with the CPU's values."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_profile.analysis.hotspots import find_hotspots

FOLDER = Path(__file__).parent / "scripts"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
TOLERANCE = 1e-3
SHARED = {"texts", "language_model"}
"""Modules of the scripts, not scripts."""
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Stack:
    """A script: the packages it needs, how it is launched, and where its values are computed.

    Attributes:
        script: Its name, where that is not the stack's.
        arguments: What it is called with.
        own_share: Least part of the device time on lines of the script that the user wrote.
        starts: The folder beside the first package whose script runs in the ranks: its lines are the user's.
    """

    packages: Sequence[str] = ()
    launcher: Sequence[str] = ()
    device: str = "neuron"
    script: str = ""
    arguments: Sequence[str] = ()
    own_share: float = 0.9
    starts: str = ""


STACKS = {
    "sft": Stack(("trl", "datasets", "accelerate")),
    "dpo": Stack(("trl", "datasets", "accelerate")),
    "trainer": Stack(("accelerate",)),
    "lightning_auto": Stack(("lightning",)),
    "lightning_ddp": Stack(("lightning",), script="lightning_ranks", arguments=("ddp",)),
    "lightning_fsdp": Stack(("lightning",), script="lightning_ranks", arguments=("fsdp",)),
    "fabric": Stack(("lightning",)),
    "torchtune_recipes": Stack(("torchtune", "kagglesdk")),
    "torchtune_ranks": Stack(("torchtune", "kagglesdk"), starts="recipes"),
    "lora": Stack(("peft",)),
    "diffusion": Stack(("diffusers", "peft")),
    "int8": Stack(("torchao",)),
    "fp8": Stack(("torchao",)),
    "fsdp2": Stack(("accelerate",), TORCHRUN),
    "zero": Stack(("deepspeed",), TORCHRUN),
    "megatron": Stack(launcher=TORCHRUN),
    "ray_train": Stack(("ray.train",)),
    "bits": Stack(("bitsandbytes",)),
    "compiled": Stack(),
    "control_flow": Stack(),
    "flex": Stack(),
    "replayed": Stack(),
    "torch_profiler": Stack(),
    "buckets": Stack(device="cpu"),
    "jax_training": Stack(("equinox", "flax", "optax", "orbax.checkpoint"), device="cpu"),
    "jax_sharded": Stack(("jax",), device="cpu", own_share=0.99),
    "jax_processes": Stack(("jax",), device="cpu"),
}
"""By name. JAX computes values on its CPU devices, captured or not."""


@pytest.fixture(scope="module", params=STACKS)
def stack(request: pytest.FixtureRequest) -> str:
    """The name of a script whose packages are here."""
    for package in ("transformers", "tokenizers", *STACKS[request.param].packages):
        pytest.importorskip(package, exc_type=ImportError)
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def expected(stack: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script says on the CPU."""
    return run(stack, tmp_path_factory.mktemp("cpu"), "--cpu")


def command_of(name: str) -> list[str]:
    stack = STACKS[name]
    script = FOLDER / f"{stack.script or name}.py"
    return [sys.executable, *stack.launcher, str(script), *stack.arguments]


def run(name: str, folder: Path, *arguments: str, before: Sequence[str] = ()) -> dict[str, Any]:
    command = [*before, *command_of(name), *arguments]
    own = {**os.environ, "DS_ACCELERATOR": "cpu"} if "--cpu" in arguments else None
    answer = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith('{"device"')]
    found: dict[str, Any] = json.loads(line)
    return found


def test_every_script_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - SHARED == {
        stack.script or name for name, stack in STACKS.items()
    }


def test_it_runs_on_the_device_with_the_cpus_values(
    stack: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    found = run(stack, tmp_path)
    assert (expected["device"], found["device"]) == ("cpu", STACKS[stack].device)
    assert found["values"] == pytest.approx(expected["values"], rel=TOLERANCE)


def own_folder(name: str) -> Path:
    """Where the lines of a stack's user stand."""
    stack = STACKS[name]
    if not stack.starts:
        return FOLDER
    return Path(str(importlib.import_module(stack.packages[0]).__file__)).parents[1] / stack.starts


def own_share(profile: Path, folder: Path) -> float:
    """The part of the device time that counts to lines of files of the folder."""
    with neuron_tools.open_profile(profile) as opened:
        assert opened.complete
        hotspots = find_hotspots(opened)
    own = [line.cost.device_ns for line in hotspots.lines if Path(line.place.file).is_relative_to(folder)]
    return sum(own) / hotspots.device_ns


def test_captured_it_does_the_same_at_lines_of_the_script(
    stack: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    capture = (
        sys.executable,
        "-m",
        "neuron_profile.cli",
        "capture",
        "-o",
        "run.nprof",
        "--host-clock",
        "fixed",
        "--",
    )
    found = run(stack, tmp_path, before=capture)
    assert found["device"] == STACKS[stack].device
    assert found["values"] == pytest.approx(expected["values"], rel=TOLERANCE)
    assert own_share(tmp_path / "run.nprof", own_folder(stack)) >= STACKS[stack].own_share
