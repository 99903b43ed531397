"""Training stacks by their own interfaces: on the device, captured or not, with the CPU's values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "scripts"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
TOLERANCE = 1e-3

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Stack:
    """A script: the packages it needs, and how it is launched."""

    packages: Sequence[str]
    launcher: Sequence[str] = ()


STACKS = {
    "sft": Stack(("trl", "datasets", "accelerate")),
    "dpo": Stack(("trl", "datasets", "accelerate")),
    "lora": Stack(("peft",)),
    "int8": Stack(("torchao",)),
    "fp8": Stack(("torchao",)),
    "fsdp2": Stack(("accelerate",), TORCHRUN),
    "zero": Stack(("deepspeed",), TORCHRUN),
}


@pytest.fixture(scope="module", params=STACKS)
def stack(request: pytest.FixtureRequest) -> str:
    """The name of a script whose packages are here."""
    for package in ("transformers", "tokenizers", *STACKS[request.param].packages):
        pytest.importorskip(package)
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def expected(stack: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script says on the CPU."""
    return run(stack, tmp_path_factory.mktemp("cpu"), "--cpu")


def command_of(name: str) -> list[str]:
    return [sys.executable, *STACKS[name].launcher, str(FOLDER / f"{name}.py")]


def run(name: str, folder: Path, *arguments: str, before: Sequence[str] = ()) -> dict[str, Any]:
    command = [*before, *command_of(name), *arguments]
    own = {**os.environ, "DS_ACCELERATOR": "cpu"} if "--cpu" in arguments else None
    answer = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith('{"device"')]
    found: dict[str, Any] = json.loads(line)
    return found


def test_every_script_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"texts"} == set(STACKS)


def test_it_runs_on_the_device_with_the_cpus_values(
    stack: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    found = run(stack, tmp_path)
    assert (expected["device"], found["device"]) == ("cpu", "neuron")
    assert found["values"] == pytest.approx(expected["values"], rel=TOLERANCE)


def test_captured_it_does_the_same(stack: str, expected: dict[str, Any], tmp_path: Path) -> None:
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
    assert found["device"] == "neuron"
    assert found["values"] == pytest.approx(expected["values"], rel=TOLERANCE)
