"""Real clients, where they are installed, on simulated devices: what they show is what was published.

`pip install --no-deps scalene optimum-neuron ray accelerate` is enough: only their readers are loaded.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.neuron_sysfs import INFERENTIA2, TRAINIUM1, TRAINIUM2, SysfsTree, held, process_core

pytestmark = pytest.mark.slow
HOSTS = {
    "trn1": (TRAINIUM1, 1, 1),
    "trn1 of 16 devices": (TRAINIUM1, 16, 1),
    "trn2, two cores as one": (TRAINIUM2, 1, 2),
    "trn2, each core by itself": (TRAINIUM2, 1, 1),
    "trn2 of 16 devices, two cores as one": (TRAINIUM2, 16, 2),
    "trn2 of 16 devices, each core by itself": (TRAINIUM2, 16, 1),
    "inf2": (INFERENTIA2, 1, 1),
    "inf2 of 16 devices": (INFERENTIA2, 16, 1),
}
INSTANCES = ("trn1.2xlarge", "trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge", "inf2.xlarge", "inf2.48xlarge")
"""With 1 device and with as many as there are, 16 or, of Inf2, 12."""
SCRIPTS = Path(sys.executable).parent
HELD_BYTES = 3 << 20
PATIENCE_S = 120.0
HOLDING = """
import time, torch
held = [torch.zeros({}, device="neuron") for _ in range(3)]
print(1, flush=True)
time.sleep(300)
"""
ACCELERATED = """
import time, torch
from accelerate.test_utils.testing import get_backend
backend, count, memory = get_backend()
held = [torch.zeros({}, device=backend) for _ in range(3)]
print(backend, count, memory(), flush=True)
time.sleep(300)
"""


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SysfsTree:
    """A host whose devices every client finds."""
    chip, devices, size = HOSTS[request.param]
    tree = SysfsTree(tmp_path / "tree", chip, devices, lnc=size)
    monkeypatch.setenv("NEURON_SYSFS_ROOT", str(tree.root))
    monkeypatch.setenv("PATH", f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}")
    return tree


def work(tree: SysfsTree, seconds: int) -> None:
    """Two physical cores of this process were busy for a half of so many seconds, and hold memory."""
    core = {
        "busy_ns": seconds * 500_000_000,
        "status": {"success": seconds},
        "device_memory": held(tensors=HELD_BYTES),
    }
    cores = {str(each): process_core(tree, each, **core) for each in (0, 1)}
    tree.publish(os.getpid(), [0, 1], cores=cores, elapsed_ns=seconds * 10**9, published_at=1e9 + seconds)


def reader(package: str, path: str, **needed: ModuleType) -> ModuleType:
    """One module of an installed package, without importing the whole; skips where it is not installed."""
    try:
        place = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        pytest.skip(f"pip install --no-deps {package}")
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = {name: sys.modules.get(name) for name in needed}
    sys.modules.update(needed)
    try:
        spec.loader.exec_module(module)
    finally:
        for name, known in before.items():
            sys.modules.pop(name) if known is None else sys.modules.update({name: known})
    return module


@pytest.fixture
def scalene() -> Iterator[SimpleNamespace]:
    """Scalene's reader with its monitor running, which is ended."""
    base = reader("scalene", "scalene/scalene_accelerator.py")
    module = reader("scalene", "scalene/scalene_neuron.py", **{"scalene.scalene_accelerator": base})
    made = module.ScaleneNeuron()
    yield made
    if made._neuron_monitor is not None:
        made._neuron_monitor._process.kill()
        made._neuron_monitor._process.wait()


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_scalene_itself(host: SysfsTree, scalene: SimpleNamespace, busy: bool) -> None:
    host.publish(os.getpid(), [0, 1])
    assert scalene.has_gpu()
    scalene.start_monitor()
    scalene.get_stats()
    wanted = (0.5, 2 * HELD_BYTES / (1 << 20)) if busy else (0.0, 0.0)
    seconds, end = 0, time.monotonic() + PATIENCE_S
    while (found := scalene.get_stats()) != wanted and time.monotonic() < end:
        seconds += 1
        if busy:
            work(host, seconds)
        time.sleep(0.5)
    assert found == wanted


def test_ray_itself(host: SysfsTree, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, constants = ModuleType("accelerator"), ModuleType("ray_constants")
    manager.AcceleratorManager = object  # type: ignore[attr-defined]
    constants.env_bool = lambda name, default: default  # type: ignore[attr-defined]
    parts = {"ray._private.accelerators.accelerator": manager, "ray._private.ray_constants": constants}
    module = reader("ray", "ray/_private/accelerators/neuron.py", **parts)
    run = subprocess.run

    def found_on_path(command: list[str], **options: object) -> object:
        assert command[0] == "/opt/aws/neuron/bin/neuron-ls"
        return run(["neuron-ls", *command[1:]], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(module.subprocess, "run", found_on_path)
    monkeypatch.setattr(module.os.path, "isdir", lambda path: True)
    cores = module.NeuronAcceleratorManager.get_current_node_num_accelerators()
    assert cores == host.devices * host.chip.cores // host.lnc


@pytest.fixture(params=INSTANCES)
def instance(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The tree of a simulated driver that shows an instance."""
    root = tmp_path / "tree"
    command = [sys.executable, "-m", "neuron_tools.device.driver", "load", "--target", request.param]
    environment = {**os.environ, "NEURON_SYSFS_ROOT": str(root)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return root


@contextmanager
def holding(program: str, root: Path) -> Iterator[tuple[bytes, int]]:
    """A program that runs on the simulated device: the line that it prints, holding memory, and its pid."""
    command, environment = [sys.executable, "-c", program], {**os.environ, "NEURON_SYSFS_ROOT": str(root)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout is not None
            line = started.stdout.readline()
            time.sleep(1)
            yield line, started.pid
        finally:
            started.kill()


def one_report(root: Path) -> dict[str, Any]:
    """What `neuron-monitor` prints first."""
    command = [str(SCRIPTS / "neuron-monitor"), "--sysfs-root", str(root), "--count", "1"]
    report: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return report


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_optimum_neuron_itself(instance: Path, busy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optimum reads the driver's nodes of a program that runs; the monitor has the same bytes."""
    module = reader("optimum-neuron", "optimum/neuron/utils/neuron_device_memory.py")
    with holding(HOLDING.format(1 << 20 if busy else 1), instance) as (line, _):
        assert line == b"1\n"
        monkeypatch.setattr(module, "SYSFS_NEURON_BASE", instance)
        found = module.get_neuron_device_memory().get_total_memory()
        status = one_report(instance)["system_data"]["neuron_device_status"]["devices"]
    assert found == sum(device["memory_used_bytes"] for device in status)
    assert (found >= 3 * 4 << 20) is busy


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_accelerate_itself(instance: Path, busy: bool) -> None:
    """Accelerate asks the program's own runtime; the monitor has the same bytes of it, from outside."""
    try:
        distribution("accelerate")
    except PackageNotFoundError:
        pytest.skip("pip install accelerate")
    with holding(ACCELERATED.format(1 << 20 if busy else 1), instance) as (line, pid):
        backend, _, held_bytes = line.split()
        (mine,) = [
            each["report"] for each in one_report(instance)["neuron_runtime_data"] if each["pid"] == pid
        ]
    used = mine["memory_used"]["neuron_runtime_used_bytes"]["usage_breakdown"]["neuroncore_memory_usage"]
    assert backend == b"neuron"
    assert sum(core["tensors"] for core in used.values()) == int(held_bytes)
    assert (int(held_bytes) >= 3 * 4 << 20) is busy
