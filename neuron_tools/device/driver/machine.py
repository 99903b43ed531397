"""The machine that a tree shows: one instance type with its devices."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.version import installed_version

FILE = "driver.json"
FORMAT = 1
SIMULATED = "simulated"
_MACHINE_ID = Path("/etc/machine-id")


@frozen
class Machine:
    """What `driver.json` tells.

    Attributes:
        cores_per_device: Physical NeuronCores of a chip.
        connected: Neighbours of each device.
        stays: Whether the tree outlives the processes that publish in it.
    """

    target: str
    instance_type: str
    device_count: int
    cores_per_device: int
    device_memory_bytes: int
    logical_core_size: int
    connected: tuple[tuple[int, ...], ...]
    stays: bool = False

    @property
    def core_count(self) -> int:
        """Physical NeuronCores of all devices."""
        return self.device_count * self.cores_per_device

    def place(self, core_id: int) -> tuple[int, int]:
        """(device, core of it) of a physical core's number."""
        return divmod(core_id, self.cores_per_device)

    def as_text(self) -> str:
        """The text of `driver.json`."""
        head = {
            "format": FORMAT,
            "driver": SIMULATED,
            "version": installed_version(),
            "loaded_at": time.time(),
        }
        return json.dumps({**head, **asdict(self)})


def simulated_machine(target: str, *, stays: bool = False) -> Machine:
    """The instance of a target, or an instance type itself.

    Raises:
        UnknownTargetError: There is no such target or instance.
    """
    from neuron_tools import hardware

    device = hardware.device(target)
    links, count = hardware.links(device), device.instance.chips
    connected = tuple(
        tuple(other for other in range(count) if other != chip and links.hops(chip, other) == 1)
        for chip in range(count)
    )
    return Machine(
        target=device.core.target,
        instance_type=device.instance.name,
        device_count=count,
        cores_per_device=device.chip.cores,
        device_memory_bytes=device.chip.hbm_bytes,
        logical_core_size=device.core.logical_core_size,
        connected=connected,
        stays=stays,
    )


def read_machine(root: Path) -> Machine | None:
    """The machine of a tree; None where there is no tree of the simulated driver.

    Raises:
        ValueError: There is one, of another version or damaged.
    """
    try:
        told: Mapping[str, Any] = json.loads((root / FILE).read_text(encoding="utf-8"))
    except OSError:
        return None
    if told.get("format") != FORMAT or told.get("driver") != SIMULATED:
        raise ValueError(f"{root / FILE} is not of this version of Neuron Tools")
    fields = {name: told[name] for name in Machine.__dataclass_fields__ if name != "connected"}
    return Machine(**fields, connected=tuple(tuple(row) for row in told["connected"]))


def serial_number(device: int) -> str:
    """The same 16 hexadecimal digits for the same device of the same user and machine."""
    try:
        machine = _MACHINE_ID.read_text(encoding="utf-8").strip()
    except OSError:
        machine = os.uname().nodename
    return hashlib.sha256(f"{machine}/{os.getuid()}/{device}".encode()).hexdigest()[:16]
