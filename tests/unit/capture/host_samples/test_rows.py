"""Samples become rows: on the capture's clock, without collections, of the leading thread."""

import json

import numpy as np

from neuron_tools.capture.host_samples.main_calls import CallPlaces, MainCalls
from neuron_tools.capture.host_samples.rows import host_sample_rows
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.records.capture_log import RECORD_DTYPE, RecordKind
from neuron_tools.records.host_samples import INTERVAL_NS, SAMPLE_DTYPE
from neuron_tools.records.program import Frame

STACKS = {
    1: [["train.py", 5, "main"]],
    2: [["/lib/threading.py", 9, "Condition.wait"], ["other.py", 1, "work"]],
    3: [["torch/autograd/graph.py", 9, "_engine_run_backward"], ["train.py", 6, "main"]],
    4: [["hooks.py", 2, "hook"]],
    5: [["/lib/threading.py", 7, "Thread._wait_for_tstate_lock"], ["/lib/threading.py", 3, "_shutdown"]],
}


def write(folder, suffix, *samples):
    records = np.zeros(len(samples), SAMPLE_DTYPE)
    for record, (tick, thread, stack, start, end, collection) in zip(records, samples):
        record["tick"], record["thread"], record["stack"], record["main"] = tick, thread, stack, thread == 0
        record["start_ns"], record["end_ns"], record["kind"] = start, end, collection
        record["wall_start_ns"], record["wall_end_ns"] = start * 10, end * 10
    (folder / f"samples{suffix}.bin").write_bytes(records.tobytes())
    lines = [
        json.dumps({"id": number, "frames": frames, "span": [0] * 4, "op": ""})
        for number, frames in STACKS.items()
    ]
    (folder / f"samples{suffix}.jsonl").write_text("\n".join([*lines, '{"id": 9, "fr']))


def called(*calls):
    """Calls of the main thread, each (end, line of train.py)."""
    records = np.zeros(len(calls), RECORD_DTYPE)
    records["kind"] = RecordKind.OPERATION
    records["host_end_ns"], records["stack"] = zip(*calls) if calls else ((), ())
    main_calls = MainCalls()
    main_calls.add(records)
    return CallPlaces(main_calls, {line: (Frame("train.py", line, "main"),) for _, line in calls})


def rows(folder, offset_ns=0, calls=()):
    found = []
    for block in host_sample_rows(folder, 0, offset_ns, StackRegistry(), called(*calls)):
        names = ("start_ts", "end_ts", "kind", "source_line", "worker_idx", "is_leading")
        found += zip(*(np.asarray(block[name]).tolist() for name in names))
    return sorted(found)


def test_times_move_to_the_captures_clock_and_end_at_its_beginning(tmp_path):
    write(tmp_path, "", (1, 0, 1, 0, 100, 0), (2, 0, 1, 100, 300, 0), (2, 1, 2, 100, 300, 0))
    assert rows(tmp_path, offset_ns=-150) == [
        (0, 150, "lock", 9, 0, False),
        (0, 150, "python", 5, 0, True),
    ]


def test_a_collection_is_cut_out_of_the_samples_around_it(tmp_path):
    write(tmp_path, "", (1, 0, 1, 0, 100, 0), (1, 0, 1, 20, 30, 1), (1, 0, 1, 40, 60, 1))
    assert [row[:3] for row in rows(tmp_path)] == [
        (0, 20, "python"),
        (20, 30, "garbage_collection"),
        (30, 40, "python"),
        (40, 60, "garbage_collection"),
        (60, 100, "python"),
    ]


def test_a_hook_in_autograds_thread_leads(tmp_path):
    write(tmp_path, "", (1, 0, 3, 0, 10, 0), (1, 1, 4, 0, 10, 0), (2, 0, 3, 10, 20, 0), (2, 1, 2, 10, 20, 0))
    assert [row[3] for row in rows(tmp_path) if row[5]] == [2, 9]


def test_a_script_that_has_ended_leads_no_more(tmp_path):
    write(tmp_path, "", (1, 0, 5, 0, 10, 0), (2, 0, 5, 10, 20, 0), (2, 1, 4, 10, 20, 0))
    assert [row[3] for row in rows(tmp_path) if row[5]] == [2]


def test_a_childs_samples_stand_at_its_parents_times(tmp_path):
    write(tmp_path, "", (1, 0, 1, 0, 100, 0), (2, 0, 1, 100, 200, 0))
    write(tmp_path, "-77", (1, 0, 4, 50, 150, 0))
    child = [row for row in rows(tmp_path) if row[4] == 1]
    assert child == [(50, 150, "python", 2, 1, False)]


LATE_NS = 9 * INTERVAL_NS


def test_a_late_sample_tells_nothing_of_the_time_before_its_thread_was_elsewhere(tmp_path):
    write(tmp_path, "", (1, 0, 1, 0, LATE_NS, 0), (1, 1, 2, 0, LATE_NS, 0))
    calls = [(INTERVAL_NS, 8), (6 * INTERVAL_NS, 8), (LATE_NS + 1, 8)]

    assert [row[0] for row in rows(tmp_path, calls=calls) if row[3] == 5] == [6 * INTERVAL_NS]
    assert [row[0] for row in rows(tmp_path, calls=calls) if row[3] == 9] == [0]


def test_a_late_sample_on_a_line_that_calls_the_device_stands_for_all_its_time(tmp_path):
    write(tmp_path, "", (1, 0, 1, 0, LATE_NS, 0))
    assert [row[0] for row in rows(tmp_path, calls=[(6 * INTERVAL_NS, 5)])] == [0]


def test_a_sample_in_time_stands_for_all_its_time(tmp_path):
    write(tmp_path, "", (1, 0, 1, 0, INTERVAL_NS, 0))
    assert [row[0] for row in rows(tmp_path, calls=[(INTERVAL_NS // 2, 8)])] == [0]
