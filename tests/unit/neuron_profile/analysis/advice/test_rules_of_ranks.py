"""Rules about several ranks: each fires where it should and is silent where it should be."""

from __future__ import annotations

import pytest

import neuron_tools
from neuron_profile.analysis.advice.advise import RULES
from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.occupancy import measure_occupancy

STEP_NS, TRANSFER_NS = 10_000, 1_000
LINE = 12
PROCESSES = {
    "process_idx": [0, 1], "process_id": [1, 2], "command": ["train.py"] * 2, "rank": [0, 1],
    "start_unix_ns": [0, 0],
}  # fmt: skip


def collectives(ready_ns, calls_at_once=1):
    """CcOp rows: `ready_ns[step][rank]`; `calls_at_once` follow one another from there."""
    rows = [
        (rank, step * calls_at_once + call, ready, max(times) + call * TRANSFER_NS)
        for step, times in enumerate(ready_ns)
        for rank, ready in enumerate(times)
        for call in range(calls_at_once)
    ]
    processes, numbers, ready, starts = map(list, zip(*rows))
    count = len(rows)
    return {
        "process_idx": processes, "op_id": numbers, "trigger_start_ts": ready, "start_ts": starts,
        "end_ts": [start + TRANSFER_NS for start in starts], "duration_ns": [TRANSFER_NS] * count,
        "operation": ["AllReduce"] * count, "algorithm": ["ring"] * count, "dtype": ["float32"] * count,
        "num_elements": [1024] * count, "stream_id": [0] * count, "stream_index": [0] * count,
        "trigger_engine": ["host"] * count, "input_size": [4096] * count, "output_size": [4096] * count,
        "group_name": ["0"] * count, "replica_group": ["[0,1]"] * count, "source_file": ["train.py"] * count,
        "source_line": [LINE] * count,
    }  # fmt: skip


def findings(name, make_profile, rows):
    with neuron_tools.open_profile(make_profile(tables={"CcOp": rows, "ProcessInfo": PROCESSES})) as profile:
        return list(RULES.load(name)(Context(profile)))


def steps(late_ns, count=6):
    """Ranks that work `STEP_NS` from meeting to meeting, the second one `late_ns` longer."""
    length = STEP_NS + late_ns + TRANSFER_NS
    return [(step * length + STEP_NS, step * length + STEP_NS + late_ns) for step in range(count)]


def test_a_rank_that_is_always_late_is_found(make_profile):
    (finding,) = findings("collective_skew", make_profile, collectives(steps(5_000)))
    assert finding.evidence["rank"] == 1
    assert finding.gain_ns == 6 * 5_000


@pytest.mark.parametrize("late_ns", [0, 100], ids=["never", "hardly"])
def test_ranks_that_come_together_are_no_fault(make_profile, late_ns):
    assert findings("collective_skew", make_profile, collectives(steps(late_ns))) == []


def test_collectives_one_after_the_other_are_found_at_their_line(make_profile):
    (finding,) = findings("serial_collectives", make_profile, collectives(steps(0), calls_at_once=8))
    assert (finding.place.file, finding.place.line) == ("train.py", LINE)
    assert finding.evidence["collectives"] == 6 * 8
    assert 0 < finding.gain_ns <= finding.evidence["exposed_ns"]


def test_few_short_collectives_are_no_fault(make_profile):
    far = [(step * 1_000_000, step * 1_000_000) for step in range(1, 5)]
    assert findings("serial_collectives", make_profile, collectives(far)) == []


def test_who_starts_late_is_no_rank_to_wait_for(make_profile):
    """The first rank starts 40 us after the second; in each step the second comes 12 us late."""
    start_ns = 50_000
    rows = collectives(
        [(start_ns - 10_000, 0)] + [(start_ns + first, start_ns + second) for first, second in steps(12_000)]
    )
    ends = [(process, start_ns + step * 23_000) for process in (0, 1) for step in range(3)]
    runs = [(process, start_ns + step * 23_000 + 100) for process in (0, 1) for step in range(-3, 6)]
    tables = {
        "CcOp": rows,
        "ProcessInfo": PROCESSES,
        "HostSpan": {
            **during([(end - 1, end) for _, end in ends]),
            "process_idx": [process for process, _ in ends], "thread_idx": [0] * len(ends),
            "name": ["train"] * len(ends), "kind": ["step"] * len(ends),
        },
        "SystemProfileEvents": {
            **during([(begin, begin + 50) for _, begin in runs]),
            "id": list(range(len(runs))), "process_idx": [process for process, _ in runs],
            "nc_idx": [process for process, _ in runs], "name": ["nc_exec_running"] * len(runs),
            "trace_event_source": ["neuron_hw"] * len(runs), "instance_id": [""] * len(runs),
            "process_id": [1] * len(runs), "thread_id": [0] * len(runs),
        },
    }  # fmt: skip
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        (finding,) = RULES.load("collective_skew")(Context(profile))
        awaited = measure_occupancy(profile).awaited_rank

    assert finding.evidence["rank"] == awaited == 1
    assert finding.gain_ns == 6 * 12_000


def during(times):
    """Columns of rows with these starts and ends."""
    starts, ends = map(list, zip(*times))
    return {"start_ts": starts, "end_ts": ends, "duration_ns": [end - start for start, end in times]}
