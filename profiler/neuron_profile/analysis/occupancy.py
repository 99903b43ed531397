"""Whether the device or the host decides how long the program takes."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import numpy as np

from neuron_profile.analysis.collective_waits import collective_wait_ns
from neuron_profile.analysis.rank_meetings import rank_meetings
from neuron_profile.analysis.time.core_spans import EXECUTION_EVENT
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_profile.analysis.warm_up import WARM_UP, warm_up_end_ns
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

# Shares of time in which the device is busy: above the first the host cannot be what the program waits
# for, below the second it is.
DEVICE_BOUND_SHARE = 0.9
HOST_BOUND_SHARE = 0.6
_LATEST_NS = 1 << 62

_EXECUTIONS = f"""(
    SELECT * REPLACE (greatest(start_ts, {{low}}) AS start_ts, least(end_ts, {{high}}) AS end_ts)
    FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}' AND {{stands_for_logical}}
)"""
_DEVICE = """
SELECT coalesce(sum(n), 0) AS executions, count(*) AS cores, coalesce(sum(device), 0) AS device_ns,
    coalesce(sum(span), 0) AS window_ns
FROM (
    SELECT count(*) AS n, sum(end_ts - start_ts) AS device, max(end_ts) - min(start_ts) AS span
    FROM {executions} GROUP BY process_idx, nc_idx
)
"""
# From the end of the first of several training steps on: without tracing, compiling and first allocations.
_STEADY = f"""
WITH warm_up AS ({WARM_UP})
SELECT coalesce(sum(device), 0) AS steady_device_ns, coalesce(sum(span), 0) AS steady_window_ns
FROM (
    SELECT sum(end_ts - start_ts) AS device, max(end_ts) - max(until) AS span
    FROM {{executions}} event JOIN warm_up ON warm_up.process = coalesce(event.process_idx, 0)
    WHERE start_ts >= until GROUP BY process, nc_idx
)
"""
_HOST = """
SELECT coalesce(sum(synchronizing), 0) AS synchronizing_ns, coalesce(sum(span), 0) AS host_ns
FROM (
    SELECT sum(least(end_ts, {high}) - greatest(start_ts, {low})) FILTER (WHERE kind = 'synchronize')
            AS synchronizing,
        max(least(end_ts, {high})) - min(greatest(start_ts, {low})) AS span
    FROM HostSpan GROUP BY process_idx
)
"""
# Reading a tensor (loss.item()) waits until the device has made it: all of the call but the copy itself.
_READING = """
SELECT greatest(coalesce(sum(ns) FILTER (WHERE name = 'nrt_tensor_read'), 0)
    - coalesce(sum(ns) FILTER (WHERE name = 'dmem_buf_copyout'), 0), 0) AS reading_ns
FROM (SELECT name, least(end_ts, {high}) - greatest(start_ts, {low}) AS ns FROM SystemProfileEvents) WHERE
name IN ('nrt_tensor_read', 'dmem_buf_copyout')
"""


_GRAPHS = "SELECT count(*) AS compiled_graphs FROM Executable WHERE kind = 'graph'"


class Bound(Enum):
    """What a program waits for."""

    NOTHING_RAN = "nothing ran on the device"
    DEVICE = "device-bound"
    HOST = "host-bound"
    BOTH = "partly host-bound"


@frozen
class Occupancy:
    """Executions on the device, seen over time.

    Attributes:
        executions: Number of executions.
        cores: Logical NeuronCores that executed something.
        device_ns: Sum of the execution spans: the device time.
        window_ns: From first to last execution, summed over the cores; device_ns plus the gaps.
        host_wait_ns: Time host threads waited for the device, in synchronisations and in reads of tensors.
        host_ns: From first to last host span, summed over the processes.
        steady_device_ns, steady_window_ns: The same as without "steady", from the end of the first training
            step on; 0 where there are no two steps.
        compiled_graphs: Executables that torch.compile made.
        awaited_rank: The rank that the others wait for, where their waiting in collectives is most of the
            time in which nothing runs, of the steady time where there is any; else None.
    """

    executions: int
    cores: int
    device_ns: int
    window_ns: int
    host_wait_ns: int
    host_ns: int
    steady_device_ns: int = 0
    steady_window_ns: int = 0
    compiled_graphs: int = 0
    awaited_rank: int | None = None

    @property
    def has_steps(self) -> bool:
        """Whether the first training step can be told from the others."""
        return self.steady_window_ns > 0

    @property
    def steady_share(self) -> float:
        """Busy share after the first step, which compiles and allocates; of everything without steps."""
        return self.steady_device_ns / self.steady_window_ns if self.has_steps else self.busy_share

    @property
    def busy_share(self) -> float:
        """Part of the window in which the device executed something."""
        return self.device_ns / self.window_ns if self.window_ns else 0.0

    @property
    def idle_ns(self) -> int:
        """Gaps between executions."""
        return self.window_ns - self.device_ns

    @property
    def bound(self) -> Bound:
        """What the program waits for."""
        if not self.executions:
            return Bound.NOTHING_RAN
        if self.steady_share >= DEVICE_BOUND_SHARE:
            return Bound.DEVICE
        return Bound.HOST if self.steady_share < HOST_BOUND_SHARE else Bound.BOTH


def measure_occupancy(profile: Profile) -> Occupancy:
    """Occupancy of all NeuronCores and hosts of a profile."""
    low, high = profile.range_ns or (-(1 << 62), 1 << 62)
    chosen = of_first_cores(profile, "nc_idx")
    executions = _EXECUTIONS.format(low=low, high=high, stands_for_logical=chosen)

    def row(*queries: str) -> dict[str, int]:
        together = f"SELECT * FROM {', '.join(f'({query})' for query in queries)}"
        return dict(profile.query(together.format(executions=executions, low=low, high=high)).to_pylist()[0])

    numbers = row(_DEVICE, _HOST, _READING)
    if profile.range_ns is None:
        numbers.update(row(_STEADY))
    else:  # before the first execution and after the last is waiting, too
        numbers["window_ns"] = (high - low) * numbers["cores"]
    numbers["host_wait_ns"] = numbers.pop("synchronizing_ns") + numbers.pop("reading_ns")
    numbers["compiled_graphs"] = profile.whole.kept(
        "compiled_graphs", lambda: _compiled_graphs(profile.whole)
    )
    found = Occupancy(**{name: int(value) for name, value in numbers.items()})
    return replace(found, awaited_rank=_awaited_rank(profile, found))


def _compiled_graphs(profile: Profile) -> int:
    return int(profile.query(_GRAPHS).column(0)[0].as_py())


def _awaited_rank(profile: Profile, found: Occupancy) -> int | None:
    """The rank that comes last to the collectives, where waiting in them is most of a core's idle time."""
    steady_ns = warm_up_end_ns(profile)
    idle_ns = found.idle_ns
    if found.has_steps and steady_ns is not None:
        profile = profile.slice(steady_ns, _LATEST_NS)
        idle_ns = found.steady_window_ns - found.steady_device_ns
    if collective_wait_ns(profile) <= idle_ns / max(found.cores, 1) / 2:
        return None
    meetings = rank_meetings(profile)
    return int(meetings.ranks[int(np.argmax(meetings.lateness_ns()))]) if len(meetings) else None
