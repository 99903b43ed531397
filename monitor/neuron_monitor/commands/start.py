"""Makes the parts that every command of the monitor reads from."""

from __future__ import annotations

import gc
import os
import sys

from neuron_monitor.api import kernels
from neuron_monitor.api.host import Host
from neuron_monitor.api.instance import Instance
from neuron_monitor.api.kubernetes import LOG_FOLDER, PodWatch
from neuron_monitor.api.root import find_root
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree

# A sample of a large host makes some ten thousand objects, none of them in cycles. To look for them as often
# as Python does costs a third of the monitor's time.
OBJECTS_BETWEEN_COLLECTIONS = 200_000
OUTDATED = (
    "neuron-monitor: its compiled loops are older than its code, and those in Python cost twice as much: "
    "run 'pip install --no-deps --no-build-isolation -e .' in the checkout."
)


def make_sampler(
    sysfs_root: str | None, host_metrics: str = "auto", instance: Instance | None = None
) -> Sampler:
    """What reads the devices and the host; `host_metrics` is "auto" or "host"."""
    collect_seldom()
    if kernels.are_outdated:
        print(OUTDATED, file=sys.stderr)
    host = Host(sees_container=host_metrics == "auto")
    return Sampler(DeviceTree(find_root(sysfs_root)), host, instance)


def collect_seldom() -> None:
    """Let Python look for cycles of objects as seldom as a monitor can do with."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 5, 5)


def make_pods(kubernetes: bool | None) -> PodWatch | None:
    """What finds the pods of processes; by default, where there are any."""
    wanted = os.path.isdir(LOG_FOLDER) if kubernetes is None else kubernetes
    return PodWatch() if wanted else None
