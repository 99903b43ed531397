"""Real processes in the simulated driver's tree: at once, forked, killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuron_tools.device.driver import sweep

USES = """
import os, sys, torch
from neuron_tools.device.driver.runtime import torch_driver
assert not os.path.exists(os.environ["NEURON_SYSFS_ROOT"] + f"/processes/{os.getpid()}.json")
held = torch.ones(1000, device="neuron")
for _ in range(10):
    held.add_(1)
held.cpu()
try:
    held @ torch.ones(3, device="neuron")
except RuntimeError:
    pass
torch_driver.flush()
print("published", flush=True)
sys.stdin.readline()
"""
FORKS = """
import os, torch
from neuron_tools.device.driver.runtime import torch_driver
held = torch.ones(10, device="neuron")
torch_driver.flush()
if os.fork() == 0:
    more = torch.ones(20, device="neuron")
    torch_driver.flush()
    print("child", *sorted(os.listdir(os.environ["NEURON_SYSFS_ROOT"] + "/processes")), flush=True)
    os.kill(os.getpid(), 9)
os.wait()
print("parent", os.getpid(), flush=True)
"""


@contextmanager
def running(root: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has used the device and waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", USES],
        env={**os.environ, "NEURON_SYSFS_ROOT": str(root), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "published\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> None:
    """Lets the process end by itself."""
    process.communicate("\n")


def value(root: Path, core: int, path: str) -> int:
    return int((root / f"neuron0/neuron_core{core}/stats" / path).read_text())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sysfs"


def test_processes_are_seen_each_on_its_cores_and_leave_nothing(root: Path) -> None:
    with (
        running(root, NEURON_RT_VISIBLE_CORES="2", NEURON_PROCESS_TAG="ranker") as ranker,
        running(root, NEURON_RT_VISIBLE_CORES="5-6") as other,
    ):
        for core in (2, 5):
            assert value(root, core, "status/success/present") == 12
            assert value(root, core, "status/exec_bad_input/present") == 1
            assert value(root, core, "memory_usage/device_mem/tensors/present") == 4000
            assert value(root, core, "traffic/device_to_host_bytes/present") == 4000
        told = json.loads((root / f"processes/{ranker.pid}.json").read_text())
        assert (told["tag"], told["timing"], list(told["cores"])) == ("ranker", False, ["2"])
        end(ranker)
        assert value(root, 2, "status/success/total") == 12
        assert value(root, 2, "memory_usage/device_mem/tensors/present") == 0
        assert sorted(os.listdir(root / "processes")) == [f"{other.pid}.counters", f"{other.pid}.json"]
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert sweep(root) == [other.pid]
    assert not root.exists()


def test_a_forked_child_is_a_process_of_its_own(root: Path) -> None:
    environment = {**os.environ, "NEURON_SYSFS_ROOT": str(root)}
    answer = subprocess.run(
        [sys.executable, "-c", FORKS], env=environment, capture_output=True, text=True, check=True
    )
    child, parent = answer.stdout.splitlines()
    assert len([name for name in child.split() if name.endswith(".json")]) == 2
    assert f"{parent.split()[1]}.json" in child
    assert len(sweep(root)) == 1
    assert not root.exists()
