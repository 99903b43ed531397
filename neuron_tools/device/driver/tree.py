"""The tree's folders and files: made, filled and removed. Whoever changes its shape holds its lock."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from neuron_tools.device.driver import machine as machines, processes
from neuron_tools.device.driver.architecture import ARCHITECTURES
from neuron_tools.device.driver.counts import CoreCounts, sum_of
from neuron_tools.device.driver.errors import DriverError
from neuron_tools.device.driver.machine import Machine
from neuron_tools.device.driver.nodes import (
    CORE_NODES,
    ECC,
    HOST_MEMORY,
    LATENCIES,
    Node,
    core_node_values,
    core_nodes,
    histogram_text,
)
from neuron_tools.device.driver.writer import NodeWriter

_UNUSED_CORE = ".unused_core"
_MAKING = ".making"
_RETIRED = ".retired.json"
_LOCK = ".lock"
_OWNERS = "processes"


def make_tree(root: Path, machine: Machine) -> Machine:
    """Makes the tree unless it is there; gives back the machine that it shows, which may be another one.

    All is made aside and then moved in place: what says whose tree it is first, the folder of processes last.
    As long as that is missing, readers wait.

    Raises:
        DriverError: The folder holds the real driver's tree, or one of another version.
        OSError: The folder cannot be written.
    """
    try:
        shown = machines.read_machine(root)
    except ValueError as error:
        raise DriverError(f"{error}: stop what publishes there, then remove {root}.") from error
    if shown is not None and (root / processes.FOLDER).is_dir():
        return shown
    if shown is not None:
        _clear(root)
    if (root / "neuron0").exists():
        raise DriverError(
            f"{root} holds another driver's tree: set NEURON_SYSFS_ROOT to a folder of your own."
        )
    making = root / _MAKING
    shutil.rmtree(making, ignore_errors=True)
    (making / processes.FOLDER).mkdir(parents=True)
    (making / machines.FILE).write_text(machine.as_text(), encoding="utf-8")
    _make_core(making / _UNUSED_CORE, machine)
    devices = [f"neuron{device}" for device in range(machine.device_count)]
    for device in range(machine.device_count):
        _make_device(making, machine, device)
    for name in (machines.FILE, _UNUSED_CORE, *devices, processes.FOLDER):
        (making / name).rename(root / name)
    making.rmdir()
    return machine


def remove_tree(root: Path) -> None:
    """Removes what `make_tree` made and all that was published in it; anything else in the folder stays."""
    _clear(root)
    (root / _LOCK).unlink(missing_ok=True)
    with suppress(OSError):
        root.rmdir()


def _clear(root: Path) -> None:
    """Removes all but the lock.

    Whoever is killed in the middle leaves what says whose tree it is, and no folder of processes: so the next
    one knows that it has to be made anew.
    """
    shutil.rmtree(root / processes.FOLDER, ignore_errors=True)
    for path in root.glob("neuron[0-9]*"):
        shutil.rmtree(path, ignore_errors=True)
    for name in (_UNUSED_CORE, _MAKING):
        shutil.rmtree(root / name, ignore_errors=True)
    for name in (_RETIRED, machines.FILE):
        (root / name).unlink(missing_ok=True)


def core_folder(root: Path, machine: Machine, core_id: int) -> Path:
    """The folder of a physical core."""
    device, core = machine.place(core_id)
    return root / f"neuron{device}" / f"neuron_core{core}"


def use_core(root: Path, machine: Machine, core_id: int, pid: int) -> None:
    """Gives a core a folder of its own, and enters a process as one that uses it."""
    folder = core_folder(root, machine, core_id)
    if folder.is_symlink():
        made = folder.with_name(f".{folder.name}")
        shutil.rmtree(made, ignore_errors=True)
        _make_core(made, machine)
        folder.unlink()
        made.rename(folder)
    (folder / _OWNERS / str(pid)).touch()


def leave_core(root: Path, machine: Machine, core_id: int, pid: int) -> None:
    """Takes a process out of those that use a core."""
    (core_folder(root, machine, core_id) / _OWNERS / str(pid)).unlink(missing_ok=True)


def owners(root: Path, machine: Machine, core_id: int) -> list[int]:
    """The processes that use a core."""
    try:
        names = os.listdir(core_folder(root, machine, core_id) / _OWNERS)
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isdigit())


def owners_changed_ns(root: Path, machine: Machine, core_id: int) -> int:
    """When a process came to a core or left it; 0 where the core is gone."""
    try:
        return os.stat(core_folder(root, machine, core_id) / _OWNERS).st_mtime_ns
    except OSError:
        return 0


def write_core(
    writer: NodeWriter,
    folder: Path,
    retired: CoreCounts,
    live: list[CoreCounts],
    *,
    timed: bool,
) -> None:
    """Fills a core's nodes with what ended processes counted and what the live ones do."""
    present = live[0] if len(live) == 1 else sum_of(live)
    ever = present if retired == CoreCounts() else sum_of([retired, present])
    base = str(folder)
    writer.write_table(base, CORE_NODES, core_node_values(ever, present))
    for kind in LATENCIES:
        writer.write(f"{base}/stats/latency/{kind}", histogram_text(ever.latency.get(kind, {})))
    writer.write(f"{base}/info/timing", "1\n" if timed else "0\n")


def write_host_memory(writer: NodeWriter, root: Path, device: int, held: dict[str, Node]) -> None:
    """Fills the nodes of host memory of a device."""
    for name, node in held.items():
        writer.write_node(f"{root}/neuron{device}/stats/memory_usage/host_mem/{name}", node)


def read_retired(root: Path) -> dict[int, CoreCounts]:
    """What processes that ended counted, by physical core."""
    try:
        told = json.loads((root / _RETIRED).read_text(encoding="utf-8"))
        return {int(number): CoreCounts.from_json(core) for number, core in told.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_retired(root: Path, retired: dict[int, CoreCounts]) -> None:
    """Keeps what `read_retired` gives."""
    text = json.dumps({str(number): core.as_json() for number, core in retired.items()})
    temporary = root / f"{_RETIRED}.tmp"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, root / _RETIRED)


def _make_device(root: Path, machine: Machine, device: int) -> None:
    folder = root / f"neuron{device}"
    names = ARCHITECTURES[machine.target]
    neighbours = ", ".join(map(str, machine.connected[device]))
    texts = {
        "connected_devices": f"{neighbours}\n",
        "core_count": str(machine.cores_per_device),
        "reset": "1\n",
        "info/notify_delay": "-1\n",
        "info/serial_number": f"{machines.serial_number(device)}\n",
        "info/memory_size": f"{machine.device_memory_bytes}\n",
        "info/architecture/arch_type": f"{names.device_type}\n",
        "info/architecture/instance_type": f"{names.instance_type}\n",
        "info/architecture/device_name": f"{names.device_name}\n",
        "stats/power/utilization": f"POWER_STATUS_NO_DATA,{int(time.time())},0.00,0.00,0.00\n",
        **{f"stats/hardware/{name}": "0\n" for name in ECC},
    }
    for path, text in texts.items():
        _write_file(folder / path, text)
    for name in HOST_MEMORY:
        _make_node(folder / "stats/memory_usage/host_mem" / name, Node(0, 0, 0))
    for core in range(machine.cores_per_device):
        (folder / f"neuron_core{core}").symlink_to(f"../{_UNUSED_CORE}", target_is_directory=True)


def _make_core(folder: Path, machine: Machine) -> None:
    """A core that has done nothing."""
    for path, node in core_nodes(CoreCounts(), CoreCounts()).items():
        _make_node(folder / path, node)
    texts = {f"stats/latency/{kind}": "" for kind in LATENCIES}
    texts["stats/tensor_engine/pe_cntrs"] = ""
    texts["info/timing"] = "0\n"
    texts["info/architecture/arch_type"] = f"{ARCHITECTURES[machine.target].core_type}\n"
    for path, text in texts.items():
        _write_file(folder / path, text)
    (folder / _OWNERS).mkdir(exist_ok=True)


def _make_node(folder: Path, node: Node) -> None:
    for name, value in node.files():
        _write_file(folder / name, f"{value}\n")


def _write_file(path: Path, text: str) -> None:
    """Hundreds are written before a process can publish: a folder is made when it turns out to be missing."""
    place, flags = str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        descriptor = os.open(place, flags, 0o644)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        descriptor = os.open(place, flags, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
