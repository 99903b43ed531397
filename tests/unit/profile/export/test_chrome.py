import json
from collections import Counter
from decimal import Decimal

import pytest

from neuron_tools.errors import UsageError
from neuron_tools.profile.export import export_chrome, export_perfetto
from tests.fixtures.perfetto_trace import read_trace
from tests.fixtures.synthetic_profile import MemoryProfile, instructions, synthetic_profile, table


def exported(profile, tmp_path, **options):
    path = tmp_path / "run.json"
    report = export_chrome(profile, path, **options)
    return json.loads(path.read_text(), parse_float=Decimal)["traceEvents"], report


def nanoseconds(microseconds):
    return int(microseconds * 1000)


def of_phase(events, phase):
    return [event for event in events if event["ph"] == phase]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    profile = synthetic_profile(60)
    folder = tmp_path_factory.mktemp("chrome")
    events, report = exported(profile, folder)
    export_perfetto(profile, folder / "run.pftrace")
    return events, report, read_trace(folder / "run.pftrace")


def test_an_event_carries_name_exact_times_line_and_arguments(tmp_path):
    rows = instructions(
        [1_000_000_000_001], [1_000_000_000_024], source_file=["/src/ü.py"], source_line=[7], raw_flops=[5]
    )
    events, _ = exported(MemoryProfile({"Instruction": rows}), tmp_path)

    (event,) = of_phase(events, "X")
    assert (event["name"], event["ts"], event["dur"]) == (
        "MATMUL",
        Decimal("1000000000.001"),
        Decimal("0.023"),
    )
    assert event["args"] == {"id": 1, "raw_flops": 5, "source": "/src/ü.py:7"}


def test_slices_are_those_of_the_perfetto_trace(whole):
    events, report, trace = whole
    found = Counter((e["name"], nanoseconds(e["ts"]), nanoseconds(e["dur"])) for e in of_phase(events, "X"))

    assert found == Counter((s.name, s.start_ns, s.end_ns - s.start_ns) for s in trace.slices)
    assert report.counts["slices"] == sum(found.values())


def test_every_thread_and_process_has_one_name(whole):
    events, _, _ = whole
    used = {(event["pid"], event["tid"]) for event in of_phase(events, "X")}
    threads = Counter((e["pid"], e["tid"]) for e in of_phase(events, "M") if e["name"] == "thread_name")
    processes = Counter(e["pid"] for e in of_phase(events, "M") if e["name"] == "process_name")

    assert set(threads) == used
    assert set(threads.values()) == set(processes.values()) == {1}
    assert {pid for pid, _ in used} <= set(processes)


def test_a_core_stands_as_a_process_named_after_its_host_process(whole):
    events, _, _ = whole
    names = {e["args"]["name"] for e in of_phase(events, "M") if e["name"] == "process_name"}

    assert "rank 1: python train.py --name 'x y' / NeuronCore 0" in names


def test_slices_of_one_thread_nest_or_do_not_touch(whole):
    events, _, _ = whole
    threads = {}
    for event in of_phase(events, "X"):
        start = nanoseconds(event["ts"])
        threads.setdefault((event["pid"], event["tid"]), []).append(
            (start, start + nanoseconds(event["dur"]))
        )
    for spans in threads.values():
        open_ends = []
        for start, end in spans:
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


def test_each_flow_starts_and_ends_right_after_its_slices(whole):
    events, report, trace = whole
    ends = {"s": {}, "f": {}}
    last = None
    for event in events:
        if event["ph"] == "X":
            last = event
        elif event["ph"] in ends:
            assert (event["pid"], event["tid"], event["ts"]) == (last["pid"], last["tid"], last["ts"])
            ends[event["ph"]][event["id"]] = last["args"]["id"]

    assert {(source, ends["f"][flow]) for flow, source in ends["s"].items()} == trace.edges
    assert len(ends["s"]) == report.counts["flows"]


def test_counters_hold_every_sample(whole):
    events, report, trace = whole
    found = Counter(event["name"] for event in of_phase(events, "C"))

    assert found == Counter({path[-1]: len(samples) for path, samples in trace.samples.items()})
    assert sum(found.values()) == report.counts["counters"]


def test_a_sample_that_is_no_number_is_left_out(tmp_path):
    usage = table("SbufUsage", timestamp=[0, 1], avg_util_percent=[float("nan"), 0.5])
    events, _ = exported(MemoryProfile({"SbufUsage": usage}), tmp_path)

    assert [event["args"] for event in of_phase(events, "C")] == [{"fraction": Decimal("0.5")}]


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "run.json").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        exported(MemoryProfile({"Instruction": instructions([0], [1])}), tmp_path)

    assert (tmp_path / "run.json").read_text() == "mine"
