"""Collectives with nothing computed meanwhile, and what one of them would cost."""

import neuron_tools
from neuron_profile.analysis.serial_runs import serial_runs


def rows(spans, line=7):
    count = len(spans)
    return {
        "start_ts": [start for start, _ in spans], "end_ts": [end for _, end in spans],
        "duration_ns": [end - start for start, end in spans], "operation": ["AllReduce"] * count,
        "algorithm": ["ring"] * count, "dtype": ["float32"] * count, "num_elements": [8] * count,
        "op_id": list(range(count)), "stream_id": [0] * count, "stream_index": [0] * count,
        "trigger_engine": ["host"] * count, "input_size": [1 << 16] * count, "output_size": [1 << 16] * count,
        "process_idx": [0] * count, "group_name": ["0"] * count, "replica_group": ["[0,1]"] * count,
        "source_file": ["train.py"] * count, "source_line": [line] * count,
    }  # fmt: skip


def runs(make_profile, tables):
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        return list(serial_runs(profile, 0))


def test_neighbours_of_one_line_are_one_run(make_profile):
    (run,) = runs(make_profile, {"CcOp": rows([(0, 100), (110, 210), (220, 320)])})
    assert (run.count, run.byte_count, run.exposed_ns, run.line) == (3, 3 << 16, 320, 7)
    assert run.joined_ns <= 300


def test_computing_between_them_ends_a_run(make_profile, tiny_tables):
    # Tensor is active 1010-1050 and 1210-1250.
    found = runs(make_profile, {**tiny_tables, "CcOp": rows([(1000, 1005), (1060, 1065)])})
    assert [run.count for run in found] == [1, 1]


def test_what_was_computed_before_can_hide_a_joined_one(make_profile, tiny_tables):
    (run,) = runs(make_profile, {**tiny_tables, "CcOp": rows([(1300, 1330), (1335, 1350)])})
    assert run.computed_ns == 80
    assert run.gain_ns == run.exposed_ns - max(0, run.joined_ns - 80)
