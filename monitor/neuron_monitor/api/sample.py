"""One look at everything: the devices' tree, the host, and the processor time of the devices' users."""

from __future__ import annotations

import time
from collections.abc import Callable

from neuron_monitor.api.host import Host, HostReading, ProcessTime
from neuron_monitor.api.instance import Instance, InstanceFacts
from neuron_monitor.api.nodes import Fault, describe_os_error
from neuron_monitor.api.records import TreeReading
from neuron_monitor.api.tree import DeviceTree
from neuron_tools.frozen import frozen

# The kernel counts processor time in ticks of 10 ms: over less than this, a share of it says little.
HOST_INTERVAL_NS = 480_000_000
# The first two looks may be closer, so that the first report comes soon.
FIRST_HOST_INTERVAL_NS = 90_000_000


@frozen
class Sample:
    """What was read at one moment.

    Attributes:
        taken_ns: Monotonic time.
        host: None where `/proc` cannot be read; read anew at most twice a second.
        host_taken_ns: When `host` and `process_times` were read.
    """

    taken_ns: int
    tree: TreeReading
    instance: InstanceFacts
    host: HostReading | None
    host_taken_ns: int
    process_times: dict[int, ProcessTime]
    host_fault: Fault | None = None


class Sampler:
    """Takes samples.

    Args:
        tree: The devices.
        host: The machine.
        instance: What machine it is.
        clock: Monotonic nanoseconds.
    """

    def __init__(
        self,
        tree: DeviceTree,
        host: Host | None = None,
        instance: Instance | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._tree = tree
        self._host = host or Host()
        self._instance = instance or Instance()
        self._clock = clock
        self._host_reading: HostReading | None = None
        self._host_taken_ns = 0
        self._host_due_ns: int | None = None
        self._host_fault: Fault | None = None
        self._times: dict[int, ProcessTime] = {}

    def sample(self) -> Sample:
        """A look at everything now; never raises for what cannot be read."""
        tree = self._tree.read()
        now_ns = self._clock()
        if self._host_due_ns is None or now_ns >= self._host_due_ns:
            interval_ns = FIRST_HOST_INTERVAL_NS if self._host_due_ns is None else HOST_INTERVAL_NS
            self._host_taken_ns, self._host_due_ns = now_ns, now_ns + interval_ns
            self._read_host([process.pid for process in tree.records.outlines[1]])
        return Sample(
            taken_ns=tree.taken_ns,
            tree=tree,
            instance=self._instance.facts(tree.instance_type),
            host=self._host_reading,
            host_taken_ns=self._host_taken_ns,
            process_times=self._times,
            host_fault=self._host_fault,
        )

    def close(self) -> None:
        """Give back all descriptors."""
        self._tree.close()
        self._host.close()

    def _read_host(self, pids: list[int]) -> None:
        self._times = self._host.process_times(pids)
        try:
            self._host_reading = self._host.read()
            self._host_fault = None
        except (OSError, ValueError) as error:
            reason = describe_os_error(error) if isinstance(error, OSError) else str(error)
            self._host_fault = Fault("/proc", reason)
