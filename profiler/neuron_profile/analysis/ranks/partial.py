"""What one rank contributes: a few kilobytes, whatever the size of its profile."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from neuron_profile.analysis.time.active import engine_active_ns
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_profile.analysis.time.core_spans import EXECUTION_EVENT
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_profile.analysis.traces.breakdown import find_kernels, process_time
from neuron_profile.analysis.traces.device_spans import load_device_spans
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile, open_profile

MEMORY_LIMIT = "256MB"  # of the queries of one rank
MOST_OPERATIONS = 200
MOST_CALLS = 1 << 16

_PROCESS = """
SELECT process_idx AS process, rank, coalesce(host, '') AS host, coalesce(command, '') AS command
FROM ProcessInfo WHERE replica_of_rank IS NULL ORDER BY process_idx
"""
_EXECUTIONS = f"""
SELECT count(*) AS executions, coalesce(CAST(sum(end_ts - start_ts) AS BIGINT), 0) AS device_ns,
    coalesce(min(start_ts), 0) AS begin_ns, coalesce(max(end_ts) - min(start_ts), 0) AS window_ns
FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}' AND coalesce(process_idx, 0) = ? AND {{chosen}}
"""
_PEAK = """
SELECT coalesce(max(total_bytes), 0) AS peak FROM SystemProfileHbmUsage WHERE coalesce(process_idx, 0) = ?
"""
_COLLECTIVES = """
SELECT operation, coalesce(replica_group, '') AS members, coalesce(input_size, 0) AS input_bytes,
    coalesce(trigger_start_ts, start_ts) AS joined_ns, end_ts AS end_ns
FROM CcOp WHERE coalesce(process_idx, 0) = ? ORDER BY joined_ns, end_ns LIMIT ?
"""


@frozen
class RankKey:
    """One rank's profile: where it is, and which process of it.

    Attributes:
        rank: As the profile says; None = it does not, as of a launcher or of a program of one process.
        command: What the process ran.
        place: Among the processes that were given.
    """

    path: str
    process: int
    rank: int | None
    host: str = ""
    command: str = ""
    place: int = 0

    @property
    def order(self) -> tuple[bool, int, int]:
        """Sorts ranks by number, before what has none, which stays as it was given."""
        return self.rank is None, self.rank or 0, self.place


@dataclass(frozen=True)
class CollectiveCalls:
    """A rank's calls on one group of ranks, in order.

    Attributes:
        operation, input_bytes: (calls,) of each.
        joined_ns: (calls,) int64, when the rank was ready.
        taken_ns: (calls,) int64, from joining to the end.
    """

    operation: list[str]
    input_bytes: Ints
    joined_ns: Ints
    taken_ns: Ints


@dataclass(frozen=True)
class RankPartial:
    """One rank.

    Attributes:
        device_ns: Time in executions, or in kernels of an imported trace.
        begin_ns, window_ns: From first to last; the difference to `device_ns` is idle.
        engines_ns: Busy time by engine; of a trace, by kind of kernel.
        operations: Time and calls of the costliest operations (kernels of a trace), by name.
        collectives: Calls by the members of their group.
    """

    key: RankKey
    executions: int
    device_ns: int
    begin_ns: int
    window_ns: int
    peak_hbm_bytes: int
    engines_ns: dict[str, int]
    operations: dict[str, tuple[float, int]]
    collectives: dict[str, CollectiveCalls] = field(default_factory=dict)

    @property
    def used_device(self) -> bool:
        """Whether anything ran on a device; nothing does in a launcher."""
        return self.executions > 0 or bool(self.collectives)


def find_ranks(paths: list[str]) -> list[RankKey]:
    """The ranks of some profiles: each process of each, by rank; replicas of ranks that ran are left out.

    Raises:
        NotAProfileError: One of them cannot be opened.
    """
    keys: list[RankKey] = []
    for path in paths:
        with open_profile(path) as profile:
            rows = profile.query(_PROCESS).to_pylist() or [{"process": 0, "rank": None}]
        keys += [RankKey(path, **row, place=place) for place, row in enumerate(rows, len(keys))]
    return sorted(keys, key=lambda key: key.order)


def measure_rank(key: RankKey) -> RankPartial:
    """The partial result of one rank; opens its profile and closes it again."""
    with open_profile(key.path, memory_limit=MEMORY_LIMIT) as profile:
        return _of_capture(profile, key) or _of_trace(profile, key)


def _of_capture(profile: Profile, key: RankKey) -> RankPartial | None:
    """Of a capture; None where nothing ran on a NeuronCore."""
    executions = _EXECUTIONS.format(chosen=of_first_cores(profile, "nc_idx"))
    (row,) = profile.query(executions, [key.process]).to_pylist()
    if not row["executions"]:
        return None
    (peak,) = profile.query(_PEAK, [key.process]).to_pylist()
    engines = engine_active_ns(profile, key.process)
    times: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for charge in charge_device_time(profile, key.process).charges:
        entry = times[charge.origin.operation]
        entry[0] += charge.device_ns
        entry[1] += charge.count
    return RankPartial(
        key, int(row["executions"]), int(row["device_ns"]), int(row["begin_ns"]), int(row["window_ns"]),
        int(peak["peak"]), engines,
        _costliest({name: (time, int(count)) for name, (time, count) in times.items()}),
        _collectives(profile, key.process),
    )  # fmt: skip


def _of_trace(profile: Profile, key: RankKey) -> RankPartial:
    """Of an imported trace, or of a profile of nothing."""
    spans = load_device_spans(profile)
    spans = spans.chosen(spans.process == key.process)
    device = process_time(key.process, spans)
    engines = {
        "compute": device.computing_ns,
        "communication": device.communication_ns,
        "memory": device.exposed_memory_ns,
    }
    kernels = [kernel for kernel in find_kernels(profile) if kernel.process == key.process]
    return RankPartial(
        key, sum(kernel.calls for kernel in kernels), device.window_ns - device.idle_ns,
        int(spans.start_ns.min()) if len(spans) else 0, device.window_ns, 0,
        {name: time for name, time in engines.items() if time},
        _costliest({kernel.name: (float(kernel.total_ns), kernel.calls) for kernel in kernels}),
    )  # fmt: skip


def _costliest(operations: dict[str, tuple[float, int]]) -> dict[str, tuple[float, int]]:
    """The costliest ones, and the sum of the rest under "(others)"."""
    order = sorted(operations, key=lambda name: (-operations[name][0], name))
    kept = {name: operations[name] for name in order[:MOST_OPERATIONS]}
    rest = [operations[name] for name in order[MOST_OPERATIONS:]]
    if rest:
        kept["(others)"] = sum(time for time, _ in rest), sum(count for _, count in rest)
    return kept


def _collectives(profile: Profile, process: int) -> dict[str, CollectiveCalls]:
    rows = profile.query(_COLLECTIVES, [process, MOST_CALLS])
    members = rows["members"].to_pylist()
    operation = rows["operation"].to_pylist()
    columns = {
        name: rows[name].to_numpy().astype(np.int64) for name in ("input_bytes", "joined_ns", "end_ns")
    }
    found = {}
    for group in dict.fromkeys(members):
        mine = np.flatnonzero([each == group for each in members])
        found[group] = CollectiveCalls(
            [operation[place] for place in mine],
            columns["input_bytes"][mine],
            columns["joined_ns"][mine],
            columns["end_ns"][mine] - columns["joined_ns"][mine],
        )
    return found
