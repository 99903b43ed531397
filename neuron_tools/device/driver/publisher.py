"""Publishes this process in the tree: a thread that writes what changed, four times a second."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuron_tools.device.driver import tree
from neuron_tools.device.driver.cores import CoreMap, core_map
from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.departure import (
    correct_host_memory,
    host_memory_nodes,
    live_processes,
    retire,
    sweep,
)
from neuron_tools.device.driver.errors import DriverError
from neuron_tools.device.driver.executions import Model
from neuron_tools.device.driver.machine import Machine, simulated_machine
from neuron_tools.device.driver.modified import lasting_mark
from neuron_tools.device.driver.own_files import OwnFiles
from neuron_tools.device.driver.processes import (
    LONGEST_TAG,
    PublishedProcess,
    published_pids,
    read_process,
    start_ticks,
)
from neuron_tools.device.driver.root import locked
from neuron_tools.device.driver.source import ActivitySource
from neuron_tools.device.driver.totals import Totals
from neuron_tools.device.driver.writer import NodeWriter
from neuron_tools.hardware import chosen_lnc
from neuron_tools.version import installed_version

INTERVAL_S = 0.25
SLOW_INTERVAL = 4  # publications from one look at models and host memory to the next
TAG_VARIABLE = "NEURON_PROCESS_TAG"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Publisher:
    """One process's part of the tree.

    Args:
        root: The tree's folder.
        source: The runtime whose work is published.
        totals: What it did so far.
        session: What the process file tells beside: target, profile, and physical cores of a logical one
            ("lnc"; None: as the environment says, else the generation's own).
    """

    def __init__(
        self, root: Path, source: ActivitySource, totals: Totals, session: Mapping[str, Any]
    ) -> None:
        self._root = root
        self._source = source
        self._totals = totals
        self._session = session
        self._writer = NodeWriter()
        self._machine: Machine | None = None
        self._cores = CoreMap(())
        self._process = PublishedProcess(os.getpid(), start_ticks(os.getpid()) or 0, _facts())
        self._neighbours: dict[int, _Neighbours] = {}
        self._files = OwnFiles(root, self._process)
        self._publications = 0
        self._models: list[dict[str, Any]] = []
        self._statm: int | None = None
        self._has_warned = False
        self._ended = False
        self._asked = self._served = 0
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="neuron-sysfs", daemon=True)

    def start(self) -> None:
        """Begins to publish, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Publishes once more and takes the process out of the tree."""
        with self._wake:
            self._ended = True
            self._wake.notify_all()
        self._thread.join()
        try:
            if self._machine is not None:
                self.publish()
                with locked(self._root):
                    retire(self._root, [self._process.pid])
        except (OSError, ValueError):
            pass  # Whoever comes next sweeps.
        self._close()

    def _run(self) -> None:
        try:
            self.enter()
            while not self._ended:
                asked = self._asked
                self._publish_again()
                self._await_next(asked)
        except (OSError, ValueError, DriverError) as error:
            self._machine = None
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        """Tells once that nothing is published."""
        if not self._has_warned:
            self._has_warned = True
            reason = error.strerror if isinstance(error, OSError) else error
            warnings.warn(f"The device's counters are not published in {self._root}: {reason}", stacklevel=1)

    def flush(self, longest_s: float = 10.0) -> bool:
        """Publishes what was done until now; whether that was done in time."""
        with self._wake:
            self._asked += 1
            asked = self._asked
            self._wake.notify_all()
            return self._wake.wait_for(lambda: self._served >= asked, longest_s)

    def _await_next(self, served: int) -> None:
        with self._wake:
            self._served = served
            self._wake.notify_all()
            self._wake.wait_for(lambda: self._ended or self._asked > served, INTERVAL_S)

    def enter(self) -> None:
        """Makes the tree if it is not there, and publishes for the first time.

        Raises:
            DriverError: The folder holds another driver's tree.
            OSError: The folder cannot be written.
        """
        sweep(self._root)
        with locked(self._root):
            self._machine = tree.make_tree(self._root, simulated_machine(self._session["target"]))
            size = self._logical_core_size
            taken = {core_id // size for core_id in self._taken()}
            self._cores = core_map(self._source.device_count(), taken, self._machine.core_count // size)
            self._look_around({})
            self._files.write(self._facts_now(), self._models, self._totals.elapsed_ns)
        self.publish()

    def publish(self) -> None:
        """Writes what changed.

        Raises:
            OSError: The tree is gone, or the disk is full.
        """
        machine = self._machine
        if machine is None:
            return
        self._totals.update()
        cores = self._placed(machine)
        is_slow_turn = self._publications % SLOW_INTERVAL == 0 or self._ended
        if is_slow_turn:
            self._look_around(cores)
        self._publications += 1
        self._process.cores = cores
        new = cores.keys() - self._neighbours.keys()
        if new:
            with locked(self._root):
                self._use(machine, new)
        self._files.write(self._facts_now(), self._models, self._totals.elapsed_ns)
        for core_id, counts in cores.items():
            self._write_core(machine, core_id, counts)
        if cores and (is_slow_turn or new):
            self._write_host_memory(machine)

    def _close(self) -> None:
        self._writer.close()
        self._files.close()
        if self._statm is not None:
            os.close(self._statm)
            self._statm = None

    def _publish_again(self) -> None:
        try:
            self.publish()
        except FileNotFoundError:
            # Somebody removed the tree.
            self._close()
            self._neighbours.clear()
            self.enter()
        except OSError as error:
            self._warn(error)  # A full disk may have room again the next time.

    def _taken(self) -> set[int]:
        published = (read_process(self._root, pid) for pid in published_pids(self._root))
        return {core for process in published if process for core in process.rest["reserved_cores"]}

    def _placed(self, machine: Machine) -> dict[int, CoreCounts]:
        """The counts of each used core by its number on the machine."""
        placed: dict[int, CoreCounts] = {}
        told = [self._totals.counts(), self._totals.second_counts()][: self._logical_core_size]
        for part, counts_by_index in enumerate(told):
            for index, counts in counts_by_index.items():
                core_id = self._first_core(index, machine.core_count) + part
                device, core = machine.place(core_id)
                placed[core_id] = replace(counts, device=device, core=core)
        return placed

    @property
    def _logical_core_size(self) -> int:
        """Physical cores of each core that the process sees."""
        return int(self._session["lnc"] or chosen_lnc(self._session["target"]))

    def _first_core(self, index: int, core_count: int) -> int:
        """The machine's number of the first physical core of `neuron:index`."""
        size = self._logical_core_size
        return self._cores.core_id(index, core_count // size) * size

    def _look_around(self, cores: Mapping[int, CoreCounts]) -> None:
        """What changes slowly or costs more to find out."""
        self._process.host_memory = {"application_memory": self._own_memory(cores)}
        timed = self._source.is_timed()
        self._models = [self._model_json(model, timed) for model in self._totals.models()]

    def _facts_now(self) -> dict[str, Any]:
        """What the process's file tells beside counts and models."""
        return {
            "target": self._session["target"],
            "logical_core_size": self._logical_core_size,
            "timing": self._source.is_timed(),
            "profile": self._session["profile"],
            "reserved_cores": self._reserved(),
        }

    def _reserved(self) -> list[int]:
        """Physical cores that no other process should be given."""
        size = self._logical_core_size
        return [core * size + part for core in self._cores.reserved for part in range(size)]

    def _model_json(self, model: Model, timed: bool) -> dict[str, Any]:
        return {
            "name": model.name,
            "uuid": f"{model.session:08x}{model.number:024x}",
            "model_id": model.number,
            "core": self._first_core(model.index, self._machine.core_count if self._machine else 2),
            "execution_count": model.execution_count,
            "device_ns": model.device_ns,
            "is_running": timed and model.session == self._totals.session,
        }

    def _own_memory(self, cores: Mapping[int, CoreCounts]) -> Memory:
        """Resident memory less what stands in for device memory."""
        before = self._process.host_memory.get("application_memory", Memory())
        on_device = sum(
            c.device_memory["tensors"].present for c in cores.values() if "tensors" in c.device_memory
        )
        resident = self._resident_pages() * _PAGE_BYTES
        present = max(0, resident - on_device)
        return Memory(max(before.total, present), present, max(before.peak, present))

    def _resident_pages(self) -> int:
        if self._statm is None:
            self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(self._statm, 256, 0).split()[1])

    def _use(self, machine: Machine, core_ids: set[int]) -> None:
        for core_id in core_ids:
            tree.use_core(self._root, machine, core_id, self._process.pid)
            self._neighbours[core_id] = _Neighbours()

    def _write_core(self, machine: Machine, core_id: int, counts: CoreCounts) -> None:
        folder = tree.core_folder(self._root, machine, core_id)
        near = self._neighbours[core_id]
        changed_ns = tree.owners_changed_ns(self._root, machine, core_id)
        if not changed_ns:
            raise FileNotFoundError(2, "the tree is gone", str(folder))
        if changed_ns != near.changed_ns or near.others:
            with locked(self._root):
                near.look(self._root, machine, core_id, self._process.pid)
                near.write(self._writer, folder, counts, timed=self._source.is_timed())
            return
        near.write(self._writer, folder, counts, timed=self._source.is_timed())

    def _write_host_memory(self, machine: Machine) -> None:
        device = machine.place(min(self._process.cores))[0]
        if len(published_pids(self._root)) == 1:
            tree.write_host_memory(self._writer, self._root, device, host_memory_nodes([self._process]))
            return
        correct_host_memory(self._writer, self._root, machine, device)


class _Neighbours:
    """What others counted on a core of this process."""

    def __init__(self) -> None:
        self.changed_ns = -1
        self.others: list[PublishedProcess] = []
        self._core_id = -1
        self._retired = CoreCounts()

    def look(self, root: Path, machine: Machine, core_id: int, own_pid: int) -> None:
        """Reads what other processes told. The caller holds the lock."""
        self.changed_ns = lasting_mark(tree.owners_changed_ns(root, machine, core_id))
        self._core_id = core_id
        self._retired = tree.read_retired(root).get(core_id, CoreCounts())
        self.others = [p for p in live_processes(root, machine, core_id) if p.pid != own_pid]

    def write(self, writer: NodeWriter, folder: Path, counts: CoreCounts, *, timed: bool) -> None:
        """Fills the core's nodes with all together."""
        live = [counts, *(process.cores[self._core_id] for process in self.others)]
        timed = timed or any(process.rest.get("timing") for process in self.others)
        tree.write_core(writer, folder, self._retired, live, timed=timed)


def _facts() -> dict[str, Any]:
    rank = os.environ.get("RANK", "")
    return {
        "tag": os.environ.get(TAG_VARIABLE, "")[:LONGEST_TAG] or str(os.getpid()),
        "command": " ".join(sys.orig_argv),
        "runtime_version": installed_version(),
        "rank": int(rank) if rank.isdecimal() else None,
        "started_at": time.time(),
    }
