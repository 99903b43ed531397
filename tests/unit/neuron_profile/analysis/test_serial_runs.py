"""Collectives with nothing computed meanwhile, and what one of them would cost."""

import neuron_tools
from neuron_profile.analysis import serial_runs


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
        return list(serial_runs.serial_runs(profile, 0))


def test_neighbours_of_one_line_are_one_run(make_profile):
    (run,) = runs(make_profile, {"CcOp": rows([(0, 100), (110, 210), (220, 320)])})
    assert (run.count, run.byte_count, run.exposed_ns, run.line) == (3, 3 << 16, 320, 7)
    assert run.remaining_ns <= 300
    assert run.gain_ns == 320 - run.remaining_ns


def test_computing_between_them_ends_a_run(make_profile, tiny_tables):
    # Tensor is active 1010-1050 and 1210-1250.
    found = runs(make_profile, {**tiny_tables, "CcOp": rows([(1000, 1005), (1060, 1065)])})
    assert [run.count for run in found] == [1, 1]


def test_collectives_far_apart_are_runs_of_their_own(make_profile):
    assert [run.count for run in runs(make_profile, {"CcOp": rows([(0, 100), (1_000_000, 1_000_100)])})] == [
        1,
        1,
    ]


def test_without_a_backward_pass_joining_is_all_there_is_to_gain(make_profile):
    (run,) = runs(make_profile, {"CcOp": rows([(2000, 2030), (2035, 2050)])})
    assert run.early_ns == 0
    assert run.remaining_ns == 45  # the link model has more for so few bytes


def test_inputs_are_made_by_the_last_operations_that_wrote_as_much(make_profile, tiny_tables):
    operations = {**tiny_tables["FrameworkInstruction"], "is_backward": [True] * 3}
    assert operations["layer"] == ["/model/a", "/model/a", "/model/b"]
    operations["hbm_write_bytes"] = [1 << 16, 1 << 16, 99]  # until 1060, 1250, 1260
    (run,) = runs(
        make_profile, {"FrameworkInstruction": operations, "CcOp": rows([(2000, 2030), (2035, 2050)])}
    )
    assert run.early_ns == 2000 - 1250  # the first two operations are of one module
    (run,) = runs(
        lambda **given: make_profile("other.nprof", **given),
        {"FrameworkInstruction": operations, "CcOp": rows([(2000, 2030)])},
    )
    assert run.early_ns == 2000 - 1250


def test_buckets_begin_when_their_inputs_are_made(monkeypatch):
    monkeypatch.setattr(serial_runs, "BUCKET_BYTES", 100)
    each = [
        serial_runs.Row("AllReduce", "f", 1, "", "[0,1]", "f32", at, at + 40, 100) for at in (0, 50, 100, 150)
    ]
    assert serial_runs._remaining_ns(each, [0, -20, -40, -60], None) == 100  # 40 each from -60 on
    assert serial_runs._remaining_ns(each, [-300, -200, -100, 0], None) == 40  # only the last one is left
    monkeypatch.setattr(serial_runs, "BUCKET_BYTES", 1000)
    assert serial_runs._remaining_ns(each, [-300, -200, -100, 0], None) == 160  # one bucket, when all is made


def test_an_input_is_what_both_cores_of_a_logical_one_wrote(make_profile, tiny_tables):
    both = {name: [column[0]] * 2 for name, column in tiny_tables["FrameworkInstruction"].items()}
    both |= {"id": [1, 2], "is_backward": [True] * 2, "pcore_idx": [0, 1], "hbm_write_bytes": [1 << 15] * 2}
    path = make_profile(tables={"FrameworkInstruction": both, "CcOp": rows([(2000, 2030)])}, lnc=2)
    with neuron_tools.open_profile(path) as profile:
        (run,) = serial_runs.serial_runs(profile, 0)
    assert run.early_ns == 2000 - both["end_ts"][0]
