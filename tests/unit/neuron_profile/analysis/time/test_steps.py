"""Steps are found in what a program marks, in its optimizer, in its ranges and in repeated graphs."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.time.steps import COMPILING, SLOW, STEADY, WARM_UP, find_steps
from neuron_tools import open_profile


def host_spans(rows):
    """HostSpan of (kind, name, start, end)."""
    kinds, names, starts, ends = map(list, zip(*rows))
    return {
        "kind": kinds, "name": names, "start_ts": starts, "end_ts": ends,
        "duration_ns": [end - start for start, end in zip(starts, ends)],
        "process_idx": [0] * len(rows), "thread_idx": [0] * len(rows),
    }  # fmt: skip


def spans_of(lengths, kind="step", name="train {}"):
    """Spans one after the other."""
    begin, rows = 1000, []
    for number, length in enumerate(lengths):
        rows.append((kind, name.format(number), begin, begin + length))
        begin += length + 10
    return rows


@pytest.mark.parametrize(
    ("kind", "name"),
    [("step", "ProfilerStep#{}"), ("range", "iteration {}"), ("range", "train")],
)
def test_marked_and_named_steps_are_told_apart_by_length(make_profile, kind, name):
    tables = {"HostSpan": host_spans(spans_of([900, 100, 104, 98, 260, 101, 100], kind, name))}
    with open_profile(make_profile(tables=tables)) as profile:
        found = find_steps(profile)
    assert [step.kind for step in found.steps] == [WARM_UP, STEADY, STEADY, STEADY, SLOW, STEADY, STEADY]
    assert found.typical is not None
    assert (found.typical.kind, found.typical.duration_ns) == (STEADY, 100)
    assert found.opening_ns == (found.typical.begin_ns, found.typical.end_ns)


def test_a_step_runs_from_one_optimizer_step_to_the_next(make_profile):
    rows = [("range", "start", 0, 5), *spans_of([10, 10, 10], "optimizer", "AdamW.step")]
    rows += [("compile", "graph", 100, 700)]
    with open_profile(make_profile(tables={"HostSpan": host_spans(rows)})) as profile:
        steps = find_steps(profile).steps
    assert [(step.begin_ns, step.end_ns) for step in steps] == [(0, 1010), (1010, 1030), (1030, 1050)]
    assert [step.kind for step in steps] == [COMPILING, STEADY, STEADY]


def test_without_an_optimizer_a_step_runs_from_one_backward_pass_to_the_next(make_profile):
    rows = [("dispatch", "aten::mm", 0, 5)]
    for begin in (50, 150, 250):
        rows += [
            ("range", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin, begin + 30),
            ("range", "Tensor.backward", begin + 30, begin + 50),
        ]
    with open_profile(make_profile(tables={"HostSpan": host_spans(rows)})) as profile:
        steps = find_steps(profile).steps
    assert [(step.begin_ns, step.end_ns) for step in steps] == [(0, 100), (100, 200), (200, 300)]


def test_optimizers_that_another_one_calls_are_part_of_its_step(make_profile):
    rows = [("range", "start", 0, 5)]
    for begin in (90, 190, 290):
        rows += [
            ("optimizer", "Optimizers.step", begin, begin + 10),
            ("optimizer", "AdamW.step", begin, begin + 4),
            ("optimizer", "AdamW.step", begin + 4, begin + 10),
        ]
    path = make_profile(tables={"HostSpan": host_spans(rows)})
    with open_profile(path) as profile:
        steps = find_steps(profile)
    assert [(step.begin_ns, step.end_ns) for step in steps.steps] == [(0, 100), (100, 200), (200, 300)]


def test_without_steps_the_work_of_the_device_is_looked_at_first(make_profile):
    with open_profile(make_profile()) as profile:
        found = find_steps(profile)
    assert (found.steps, found.typical, found.opening_ns) == ((), None, (1000, 1300))
    with open_profile(make_profile("empty.nprof", tables={})) as profile:
        assert find_steps(profile).opening_ns is None


def test_an_optimizer_step_ends_on_the_device_where_the_host_runs_ahead(make_profile, tiny_tables):
    framework = {name: [*values, values[-1]] for name, values in tiny_tables["FrameworkInstruction"].items()}
    framework |= {
        "id": [1, 2, 3, 4], "layer": ["/model", "/optimizer (SGD)"] * 2,
        "start_ts": [1000, 1100, 1200, 1300], "end_ts": [1090, 1190, 1290, 1390],
    }  # fmt: skip
    rows = [("optimizer", "SGD.step", 500, 510), ("optimizer", "SGD.step", 520, 530)]
    tables = {"FrameworkInstruction": framework, "HostSpan": host_spans(rows)}
    with open_profile(make_profile(tables=tables)) as profile:
        steps = find_steps(profile).steps
    assert [(step.begin_ns, step.end_ns) for step in steps] == [(500, 1190), (1190, 1390)]


def executions(rows):
    """SystemProfileEvents of (submitted, running, ended)."""
    names = ["nrt_execute", "nc_exec_running"]
    return {
        "id": list(range(2 * len(rows))), "name": names * len(rows),
        "start_ts": [time for submitted, running, _ in rows for time in (submitted, running)],
        "end_ts": [time for submitted, _, ended in rows for time in (submitted + 1, ended)],
        "duration_ns": [time for _, running, ended in rows for time in (1, ended - running)],
        "flow_id": [[str(number)] for number in range(len(rows)) for _ in names],
        "trace_event_source": ["neuron_rt", "neuron_hw"] * len(rows),
        "instance_id": ["simulated"] * 2 * len(rows),
        **{name: [0] * 2 * len(rows) for name in ("nc_idx", "process_idx", "process_id", "thread_id")},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [("step", "ProfilerStep#{}"), ("range", "train {}"), ("range", "Tensor.backward")]
)
def test_a_step_lies_where_the_device_ran_what_was_submitted_in_it(make_profile, kind, name):
    marked = [(kind, name.format(number), begin, begin + 10) for number, begin in enumerate((0, 10, 20))]
    tables = {
        "HostSpan": host_spans(marked),
        "SystemProfileEvents": executions([(1, 5, 105), (2, 106, 200), (11, 201, 390), (21, 391, 601)]),
    }
    with open_profile(make_profile(tables=tables)) as profile:
        steps = find_steps(profile).steps
    assert [(step.begin_ns, step.end_ns) for step in steps] == [(0, 200), (200, 390), (390, 601)]


def test_a_step_in_which_nothing_ran_is_none(make_profile):
    marked = [
        ("step", f"ProfilerStep#{number}", begin, begin + 10) for number, begin in enumerate((0, 10, 20))
    ]
    tables = {
        "HostSpan": host_spans(marked),
        "SystemProfileEvents": executions([(1, 5, 205), (21, 391, 601)]),
    }
    with open_profile(make_profile(tables=tables)) as profile:
        steps = find_steps(profile).steps
    assert [step.name for step in steps] == ["ProfilerStep#0", "ProfilerStep#2"]
