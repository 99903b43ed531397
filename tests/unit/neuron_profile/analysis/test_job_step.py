"""A step of a job falls apart into computing, exposed collectives, the pipeline's bubble and the rest."""

import neuron_tools
from neuron_profile.analysis.job_step import measure_job_step
from neuron_tools.profile.schema import TABLES


def executions(*spans):
    return {
        "execution_index": list(range(len(spans))),
        "execution_start_ts": [start for start, _ in spans],
        "execution_end_ts": [end for _, end in spans],
        "process_idx": [1] * len(spans),
        "executable_idx": [1] * len(spans),
        "pcore_idx": [0] * len(spans),
    }


def collectives(*rows):
    return {
        "operation": [row[0] for row in rows],
        "trigger_start_ts": [row[1] for row in rows],
        "start_ts": [row[2] for row in rows],
        "end_ts": [row[3] for row in rows],
        "input_size": [8] * len(rows),
        "output_size": [64] * len(rows),
        "duration_ns": [row[3] - row[2] for row in rows],
        **{name: ["ring"] * len(rows) for name in ("algorithm", "dtype", "trigger_engine")},
        **{name: [0] * len(rows) for name in ("num_elements", "op_id", "stream_id", "stream_index")},
        "process_idx": [1] * len(rows),
    }


def operations(*spans):
    """Operations that a backward pass computes again."""
    starts, ends = ([span[end] for span in spans] for end in (0, 1))
    required: dict[str, list[object]] = {
        name: [[]] * len(spans) if name.endswith("_per_interval") else [0] * len(spans)
        for name in TABLES["FrameworkInstruction"].required
    }
    required["time_intervals"] = ["[]"] * len(spans)
    owner = {"process_idx": [1] * len(spans), "is_recomputed": [True] * len(spans)}
    return {**required, "start_ts": starts, "end_ts": ends, **owner}


def usage(total_bytes):
    names = TABLES["SystemProfileHbmUsage"].required
    zeros = {name: [0] for name in names}
    return {**zeros, "instance_id": [""], "total_bytes": [total_bytes], "process_idx": [1]}


def both_steps(*rows):
    """The same 1,000 ns later."""
    later = [tuple(part + 1000 if isinstance(part, int) else part for part in row) for row in rows]
    return [*rows, *later]


STEPS = {
    "kind": ["step"] * 2,
    "name": ["step"] * 2,
    "start_ts": [0, 1000],
    "end_ts": [1000, 2000],
    "duration_ns": [1000] * 2,
    "process_idx": [1, 1],
    "thread_idx": [0, 0],
}


def test_what_hides_what_is_told(make_profile):
    tables = {
        "ProcessInfo": {"process_idx": [1], "rank": [5]},
        "HostSpan": STEPS,
        "ExecutionInfo": executions(*both_steps((0, 400), (700, 800))),
        # An all-reduce that computing hides for 100 ns, and a message waited for from 500 to 700.
        "CcOp": collectives(*both_steps(("AllReduce", 300, 300, 500), ("Receive", 450, 650, 700))),
        "SystemProfileHbmUsage": usage(77),
        # Computed again from 100 to 350, of two operations that overlap.
        "FrameworkInstruction": operations(*both_steps((100, 300), (250, 350))),
    }
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        step = measure_job_step(profile)
    assert step is not None
    (rank,) = step.ranks
    assert (step.step_ns, rank.rank, rank.peak_bytes, step.fits) == (1000, 5, 77, True)
    assert (rank.compute_ns, rank.communication_ns, rank.exposed_ns) == (500, 250, 100)
    assert rank.recomputed_ns == 250
    assert (rank.bubble_ns, rank.other_ns, rank.moved_bytes) == (200, 200, 128)
    assert step.limit == "computing"


def test_tokens_a_second_are_those_of_the_whole_job(make_profile):
    tables = {
        "ProcessInfo": {"process_idx": [1]},
        "HostSpan": STEPS,
        "ExecutionInfo": executions((1000, 1900)),
    }
    path = make_profile(tables=tables, tokens_per_step=64)
    with neuron_tools.open_profile(path) as profile:
        step = measure_job_step(profile)
    assert step is not None
    assert (step.step_ns, step.tokens_per_second) == (1000, 64_000_000)


def test_nothing_is_told_where_nothing_ran(make_profile):
    with neuron_tools.open_profile(make_profile(tables={"HostSpan": STEPS})) as profile:
        assert measure_job_step(profile) is None
