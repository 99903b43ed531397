"""Pods of processes: the container id in a process's control group, and the node's list of container logs.

The kubelet names each container's log `POD_NAMESPACE_CONTAINER-ID.log` in `/var/log/containers`, so a monitor
that sees that folder and the host's processes needs no rights in the cluster.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from neuron_monitor.api.records import TreeReading
from neuron_tools.frozen import frozen

LOG_FOLDER = "/var/log/containers"
LOG_NAME = re.compile(r"(?P<pod>[^_]+)_(?P<namespace>[^_]+)_(?P<container>.+)-(?P<id>[0-9a-f]{64})\.log")
CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
SCAN_INTERVAL_NS = 10_000_000_000


@frozen
class Pod:
    """The container that a process runs in."""

    pod: str
    namespace: str
    container: str


class PodWatch:
    """Finds the pods of the processes on devices.

    Args:
        log_folder: The node's folder of container logs.
        processes: Where the proc file system is.
        clock: Monotonic nanoseconds.
    """

    def __init__(
        self,
        log_folder: str = LOG_FOLDER,
        processes: str = "/proc",
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._log_folder = log_folder
        self._processes = processes
        self._clock = clock
        self._due_ns = 0
        self._containers: dict[str, Pod] = {}
        self._pods: dict[int, Pod | None] = {}
        self._error = ""

    def pods(self, tree: TreeReading) -> Mapping[int, Pod]:
        """The pod of each process that runs in one, by pid."""
        now_ns = self._clock()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + SCAN_INTERVAL_NS
            self._scan()
            self._pods = {}
        pids = [process.pid for process in tree.processes]
        self._pods = {
            pid: self._pods[pid] if pid in self._pods else self._containers.get(self._container_id(pid))
            for pid in pids
        }
        return {pid: pod for pid, pod in self._pods.items() if pod is not None}

    def group(self, tree: TreeReading) -> dict[str, Any]:
        """The group `neuron_k8s_info`, without its period: pods by logical core and by device."""
        pods = self.pods(tree)
        cores: dict[int, list[Pod]] = {}
        devices: dict[int, list[Pod]] = {}
        for process in tree.processes:
            pod = pods.get(process.pid)
            if pod is None:
                continue
            for core_id, core in process.cores.items():
                _add(cores.setdefault(core_id // process.logical_core_size, []), pod)
                _add(devices.setdefault(core.device, []), pod)
        return {
            "neuroncores_k8s_info": {str(core): _describe(found) for core, found in sorted(cores.items())},
            "neurondevices_k8s_info": {
                str(index): _describe(found) for index, found in sorted(devices.items())
            },
            "error": self._error,
        }

    def _scan(self) -> None:
        try:
            names = os.listdir(self._log_folder)
        except OSError as error:
            self._error = f"{self._log_folder}: {(error.strerror or 'cannot be read').lower()}"
            return
        self._error = ""
        matches = filter(None, map(LOG_NAME.fullmatch, names))
        self._containers = {
            match["id"]: Pod(match["pod"], match["namespace"], match["container"]) for match in matches
        }

    def _container_id(self, pid: int) -> str:
        try:
            with open(f"{self._processes}/{pid}/cgroup", encoding="ascii", errors="replace") as file:
                match = CONTAINER_ID.search(file.read())
        except OSError:
            return ""
        return match.group() if match else ""


def _add(pods: list[Pod], pod: Pod) -> None:
    if pod not in pods:
        pods.append(pod)


def _describe(pods: list[Pod]) -> dict[str, Any]:
    """One entry; where several pods share a core the first is named, with the containers of all."""
    return {
        "pod_name": pods[0].pod,
        "namespace": pods[0].namespace,
        "container_name": [pod.container for pod in pods],
    }
