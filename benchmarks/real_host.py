"""A real driver's tree in which every counter changes: what the monitor costs there, and the reads alone.

A real driver counts for the cores and publishes no pages: every node is read. Run as a module, this is one of
two programs that write a line each period: the monitor, or `reads`, a compiled loop that only reads the nodes
which the monitor reads then. What the second costs is the kernel's own cost; no monitor can cost less.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np

from neuron_monitor.api import layout
from neuron_monitor.api.device import FOLDER_INTERVAL_NS, QUIET_INTERVAL_NS, TURNS_OF_WORKING_CORES
from neuron_monitor.api.nodes import raise_descriptor_limit
from neuron_monitor.api.owners import Owners
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.commands.start import collect_seldom
from neuron_monitor.commands.stream import Lines, reports, write_reports
from neuron_monitor.report.config import default_configuration
from tests.fixtures.neuron_sysfs import TRAINIUM2, SysfsTree

DEVICES = 16
CORES = DEVICES * TRAINIUM2.cores
PUBLISH_INTERVAL_S = 0.045
_STEPS = {"nc_time_in_use": 40_000, "inference_count": 7, "flop_count": 10**12, "success": 7}
_NODE_BYTES = 64
_TOTAL = "device_memory"
_BYSTANDERS = 250
_BYSTANDERS_FILES = 12
_RUNTIME = "7f0000000000-7f0000400000 r-xp 00000000 00:00 1 /opt/aws/neuron/lib/libnrt.so.2.28.23.0\n"


class RealHost:
    """The tree, its owners as `/proc` tells them, and a thread that counts in every core.

    Args:
        folder: Where both are made.
        pids: Processes that share the cores.
    """

    def __init__(self, folder: Path, pids: Sequence[int]) -> None:
        tree = SysfsTree(folder / "tree", TRAINIUM2, DEVICES, simulated=False)
        _own_cores(folder / "proc", pids)
        _stand_by(folder / "proc", max(pids) + 1)
        names = {name: f"stats/{_group(name)}/{name}/total" for name in _STEPS}
        self._nodes = [
            (name, os.open(tree.root / tree.core(core) / node, os.O_WRONLY))
            for core in range(CORES)
            for name, node in names.items()
        ]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count on a thread of this process."""
        self._thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            self._thread.join()
            for _, node in self._nodes:
                os.close(node)

    def _count(self) -> None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        times = 0
        while not self._stopped.wait(PUBLISH_INTERVAL_S):
            times += 1
            texts = {name: b"%d\n" % (times * step) for name, step in _STEPS.items()}
            for name, node in self._nodes:
                os.pwrite(node, texts[name], 0)


def _group(name: str) -> str:
    return "status" if name == "success" else "other_info"


def _own_cores(folder: Path, pids: Sequence[int]) -> None:
    """Descriptors and environment of processes that use the cores of all devices, as `/proc` has them."""
    share = CORES // len(pids)
    for number, pid in enumerate(pids):
        first = number * share
        (folder / str(pid) / "fd").mkdir(parents=True)
        (folder / str(pid) / "fd" / "3").symlink_to(f"/dev/neuron{first // TRAINIUM2.cores}")
        (folder / str(pid) / "maps").write_text(_RUNTIME)
        told = {"NEURON_LOGICAL_NC_CONFIG": "1", "NEURON_RT_VISIBLE_CORES": f"{first}-{first + share - 1}"}
        (folder / str(pid) / "environ").write_text("\0".join(f"{name}={text}" for name, text in told.items()))


def _stand_by(folder: Path, first_pid: int) -> None:
    """Processes that use no device, as every host has them."""
    for pid in range(first_pid, first_pid + _BYSTANDERS):
        (folder / str(pid) / "fd").mkdir(parents=True)
        for number in range(_BYSTANDERS_FILES):
            (folder / str(pid) / "fd" / str(number)).symlink_to("/dev/null")


def monitor(folder: Path, period_s: float, count: int) -> None:
    """What `neuron-monitor` does, with the owners of the folder."""
    collect_seldom()
    sampler = Sampler(DeviceTree(str(folder / "tree"), owners=Owners(str(folder / "proc"))))
    write_reports(reports(sampler, default_configuration(period_s)), [Lines()], count)


def reads(folder: Path, period_s: float, count: int) -> None:
    """Reads what the monitor reads of the cores, as often, and nothing else."""
    raise_descriptor_limit()
    often, looks, quiet = _descriptors(folder / "tree")
    read = _reader()
    read(often)
    turn = 0
    looks_due_ns = quiet_due_ns = time.monotonic_ns()
    for _ in range(count):
        os.write(sys.stdout.fileno(), b"\n")
        time.sleep(period_s)
        now_ns = time.monotonic_ns()
        read(often)
        if now_ns >= looks_due_ns:
            looks_due_ns = now_ns + FOLDER_INTERVAL_NS
            read(looks)
        if now_ns >= quiet_due_ns:
            quiet_due_ns = now_ns + QUIET_INTERVAL_NS
            read(quiet[turn % TURNS_OF_WORKING_CORES :: TURNS_OF_WORKING_CORES])
            turn += 1


def _descriptors(root: Path) -> list[np.ndarray]:
    """Open nodes of all cores: those that are always read, total memory, and those that are seldom read.

    Memory by category is not among them: the monitor reads it when the total changed.
    """
    found: list[list[int]] = [[], [], []]
    for core in sorted(root.glob("neuron*/neuron_core*")):
        for name, candidates, _ in layout.CORE_COLUMNS:
            path = next((core / node for node in candidates if (core / node).is_file()), None)
            kind = 0 if name in layout.PROGRESS_COLUMNS else 1 if name == _TOTAL else 2
            if path is not None and name not in layout.DEVICE_MEMORY_CATEGORIES:
                found[kind].append(os.open(path, os.O_RDONLY | os.O_NOATIME))
    return [np.array(each, np.int64) for each in found]


def _reader() -> Callable[[np.ndarray], int]:
    """A compiled loop that reads descriptors from their start."""
    pread = ctypes.CDLL(None).pread
    pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long)
    pread.restype = ctypes.c_ssize_t

    def loop(descriptors: np.ndarray, text: np.ndarray) -> int:
        total = 0
        for descriptor in descriptors:
            total += pread(descriptor, text.ctypes, _NODE_BYTES, 0)
        return total

    # Not kept on disk: the address of `pread` is part of it.
    text, read = np.zeros(_NODE_BYTES, np.uint8), numba.njit(loop)
    return lambda descriptors: int(read(descriptors, text))


if __name__ == "__main__":
    {"monitor": monitor, "reads": reads}[sys.argv[1]](Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
