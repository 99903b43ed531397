"""What happens when a process has ended: what it counted stays, what it held goes, its files go."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from neuron_tools.device.driver import tree
from neuron_tools.device.driver.counts import CoreCounts, sum_of
from neuron_tools.device.driver.machine import Machine, read_machine
from neuron_tools.device.driver.nodes import HOST_MEMORY, Node
from neuron_tools.device.driver.processes import (
    PublishedProcess,
    is_alive,
    published_pids,
    read_process,
    remove_process,
    start_ticks,
)
from neuron_tools.device.driver.root import locked
from neuron_tools.device.driver.writer import NodeWriter


def sweep(root: Path) -> list[int]:
    """Removes what processes left that ended without cleaning up, and corrects the nodes.

    Args:
        root: The folder that holds `neuron0`, `neuron1`, ...

    Returns:
        The processes that were removed; [] where nothing is published or may be written.
    """
    try:
        if not _departed(root):
            return []
        with locked(root):
            gone = _departed(root)
            retire(root, gone)
            return gone
    except OSError:
        return []


def retire(root: Path, pids: list[int]) -> None:
    """Takes processes out of the tree, and the tree away with the last one. The caller holds the lock."""
    machine = read_machine(root)
    if machine is None or not pids:
        return
    ended = [(pid, read_process(root, pid)) for pid in pids]
    _keep_counts(root, [process for _, process in ended if process is not None])
    for pid, process in ended:
        cores = process.cores if process is not None else range(machine.core_count)
        for core_id in cores:
            tree.leave_core(root, machine, core_id, pid)
        remove_process(root, pid)
    if not published_pids(root) and not machine.stays:
        tree.remove_tree(root)
        return
    _correct(root, machine, {core_id for _, process in ended if process for core_id in process.cores})


def _departed(root: Path) -> list[int]:
    gone = []
    for pid in published_pids(root):
        process = read_process(root, pid)
        # A file that cannot be read is being written, or was cut off by a process that died meanwhile.
        alive = is_alive(process) if process is not None else start_ticks(pid) is not None
        if not alive:
            gone.append(pid)
    return gone


def _keep_counts(root: Path, ended: list[PublishedProcess]) -> None:
    retired = tree.read_retired(root)
    for process in ended:
        for core_id, counts in process.cores.items():
            before = retired.get(core_id, CoreCounts())
            retired[core_id] = sum_of([before, counts.without_present()])
    tree.write_retired(root, retired)


def _correct(root: Path, machine: Machine, core_ids: set[int]) -> None:
    retired = tree.read_retired(root)
    with closing(NodeWriter()) as writer:
        for core_id in sorted(core_ids):
            live = live_processes(root, machine, core_id)
            counts = [process.cores[core_id] for process in live]
            folder = tree.core_folder(root, machine, core_id)
            timed = any(process.rest.get("timing") for process in live)
            tree.write_core(writer, folder, retired.get(core_id, CoreCounts()), counts, timed=timed)
        for device in {machine.place(core_id)[0] for core_id in core_ids}:
            correct_host_memory(writer, root, machine, device)


def live_processes(root: Path, machine: Machine, core_id: int) -> list[PublishedProcess]:
    """The processes that use a core and have told so in their file."""
    found = [read_process(root, pid) for pid in tree.owners(root, machine, core_id)]
    return [process for process in found if process is not None and core_id in process.cores]


def correct_host_memory(writer: NodeWriter, root: Path, machine: Machine, device: int) -> None:
    """Host memory counts for the first device that a process uses."""
    all_processes = [read_process(root, pid) for pid in published_pids(root)]
    mine = [
        process
        for process in all_processes
        if process and process.cores and machine.place(min(process.cores))[0] == device
    ]
    tree.write_host_memory(writer, root, device, host_memory_nodes(mine))


def host_memory_nodes(on_device: list[PublishedProcess]) -> dict[str, Node]:
    """The nodes of `host_mem`, of the processes whose first device it is."""
    nodes = {}
    for name in HOST_MEMORY:
        held = [process.host_memory[name] for process in on_device if name in process.host_memory]
        present = sum(memory.present for memory in held)
        nodes[name] = Node(present, present, max([present, *(memory.peak for memory in held)]))
    return nodes
