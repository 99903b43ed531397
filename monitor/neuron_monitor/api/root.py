"""Where the devices' tree is: the real driver's, the simulated driver's, or a recorded copy of one."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from neuron_monitor.api.layout import REAL_ROOT, ROOT_VARIABLE

SHARED_MEMORY = "/dev/shm"
# No more digits than any host needs: a name is a number that reports hold.
DEVICE_NAME = re.compile(r"neuron(0|[1-9][0-9]{0,3})")
CORE_NAME = re.compile(r"neuron_core(0|[1-9][0-9]{0,2})")


def find_root(given: str | None = None) -> str:
    """The folder that holds `neuron0`, `neuron1`, ...; it need not exist yet.

    The first of: what is given (a recorded tree, say), `$NEURON_SYSFS_ROOT`, the real driver's folder where
    there are devices in it, and the folder in which this user's simulated driver publishes.
    """
    chosen = given or os.environ.get(ROOT_VARIABLE)
    if chosen:
        return chosen
    if list_indices(REAL_ROOT, DEVICE_NAME):
        return REAL_ROOT
    return simulated_root()


def simulated_root() -> str:
    """Where the simulated driver publishes by default (docs/simulated-driver.md)."""
    parent = SHARED_MEMORY if Path(SHARED_MEMORY).is_dir() else tempfile.gettempdir()
    return str(Path(parent) / f"neuron-sysfs-{os.getuid()}")


def list_indices(folder: str, name: re.Pattern[str]) -> list[int]:
    """The numbers of the entries of a folder that are named so, in rising order; [] where there is none."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return []
    return sorted(int(match.group(1)) for match in map(name.fullmatch, entries) if match)
