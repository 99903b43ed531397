import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from neuron_profile.analysis.host_activity import HostActivity, HostIdle
from neuron_profile.analysis.hotspots import Hotspots, module_tree
from neuron_profile.analysis.occupancy import Occupancy
from neuron_profile.analysis.time.charges import Charge, Charges
from neuron_profile.analysis.time.numbering import Origin
from neuron_profile.reports.summary_output import write_summaries
from neuron_profile.reports.summary_text import bar_text, module_rows, print_summary, verdict_text
from neuron_tools.profile.importers import import_traces
from tests.fixtures.foreign_traces import device_profile, system_profile
from tests.unit.neuron_profile.analysis.kernel_tables import kernel_tables


def summary_of(*paths: Path) -> str:
    stream = io.BytesIO()
    write_summaries([str(path) for path in paths], stream)
    return "\n".join(line.rstrip() for line in stream.getvalue().decode().splitlines())


EXPECTED = """\
tiny.nprof  python train.py --name 'a b'
trn2 (simulated), 1 process, host clock fixed

Device time  200 ns in 2 executions on 1 NeuronCore
Device busy  66.7 % of 300 ns; 100 ns idle between executions
Host time    500 ns, 100 ns of it waiting for the device
On silicon   168 ns to 238 ns expected (80 %)
             compiler may differ by 17 %, hardware model by 8 %
Matrix work  2.00 MFLOP of the model, 4.00 MFLOP executed
Utilization  MFU 25.0 %, HFU 50.0 %, MBU 12.5 % of all time
             MFU 31.2 %, HFU 62.5 %, MBU 15.6 % of the device time
HBM traffic  2.05 kB read, 0 B written
Host copies  4.10 kB to the device in 1 copy, 4 B back in 1
Peak memory  5.00 kB, reached after 20 ns

Partly host-bound: the device was busy 66.7 % of the time and idle 33.3 %.

Engine                              Active   Of device time   Of all time
─────────────────────────────────────────────────────────────────────────
Tensor   █████████▋                  80 ns           40.0 %        32.0 %
DMA      ██▍                         20 ns           10.0 %         8.0 %

Module                   Time    Share   Forward   Backward   Ops
─────────────────────────────────────────────────────────────────
model                  150 ns   75.0 %    130 ns      20 ns     3
  a                    130 ns   65.0 %    130 ns                2
  b                     20 ns   10.0 %                20 ns     1
(between operations)    50 ns   25.0 %

Operation       Time    Share   Forward   Backward   Ops
────────────────────────────────────────────────────────
aten::addmm   100 ns   50.0 %    100 ns                1
aten::mul      50 ns   25.0 %     30 ns      20 ns     2

Source line           Own code    Share   Backward   Text
─────────────────────────────────────────────────────────────────
/project/train.py:2     100 ns   50.0 %              y = layer(x)
/project/train.py:3      50 ns   25.0 %      20 ns   z = y * 2
75.0 % of the device time has a source line, 75.0 % one of your own code.

Warning (compiler): aten::foo runs on the host (2 times)
Warning (thermal): hot"""


def test_the_whole_summary(make_profile) -> None:
    assert summary_of(make_profile()) == EXPECTED


@pytest.mark.parametrize(
    ("facts", "notice"),
    [
        ({"complete": False}, "Incomplete: the recording did not reach its end"),
        ({"complete": True, "interrupted": True, "exit_status": 130}, "Interrupted: the command was stopped"),
        ({"complete": True, "exit_status": 3}, "The command failed with exit status 3."),
    ],
)
def test_a_capture_that_did_not_end_well_says_so(make_profile, facts: dict, notice: str) -> None:
    assert notice in summary_of(make_profile(**facts))


def test_a_whole_profile_carries_no_notice(make_profile) -> None:
    text = summary_of(make_profile(exit_status=0))
    assert not [word for word in ("Incomplete", "Interrupted", "failed") if word in text]


@pytest.mark.parametrize(
    ("steady_ns", "start"),
    [
        (95, "Device-bound: the device was busy 95.0 % of the time after the first step;"),
        (75, "Partly host-bound: the device was busy 75.0 % of the time after the first step"),
        (10, "Host-bound: the device was idle 90.0 % of the time after the first step;"),
    ],
)
def test_the_sentence_says_what_the_program_waits_for(steady_ns: int, start: str) -> None:
    occupancy = Occupancy(9, 1, 20, 1000, 0, 1000, steady_device_ns=steady_ns, steady_window_ns=100)
    assert verdict_text(occupancy).startswith(start)


def host_activity(kind: str, line: int, idle_ns: int) -> HostActivity:
    return HostActivity(kind, "", "train.py", line, "main", "", "", idle_ns)


@pytest.mark.parametrize(
    ("longest", "told"),
    [
        ("data_loading", ", most of it while the host was loading data at train.py:2."),
        ("compilation", ", most of it while the host was compiling at train.py:2."),
        ("python", "dispatch less often (torch.compile, larger batches)"),
    ],
)
def test_what_the_host_did_for_most_of_the_idle_time_is_named_instead_of_dispatch(
    longest: str, told: str
) -> None:
    occupancy = Occupancy(9, 1, 20, 1000, 0, 1000, steady_device_ns=10, steady_window_ns=100)
    other = "python" if longest != "python" else "data_loading"
    activities = (host_activity(longest, 2, 40), host_activity(other, 3, 30), host_activity(longest, 4, 20))
    assert told in verdict_text(occupancy, HostIdle(100, 90, 90, activities))


def test_several_things_that_take_most_of_the_idle_time_are_named_together() -> None:
    occupancy = Occupancy(9, 1, 20, 1000, 0, 1000, compiled_graphs=1)
    activities = (
        host_activity("tracing", 2, 40),
        host_activity("import", 3, 30),
        host_activity("python", 4, 10),
    )
    told = verdict_text(occupancy, HostIdle(100, 90, 90, activities))
    assert told.endswith("most of it while the host was tracing or importing modules.")
    with_python = (
        host_activity("import", 2, 40),
        host_activity("python", 4, 30),
        host_activity("lock", 5, 20),
    )
    assert "dispatch less often" in verdict_text(occupancy, HostIdle(100, 90, 90, with_python))


def test_a_smaller_part_of_the_idle_time_names_nothing() -> None:
    occupancy = Occupancy(9, 1, 20, 1000, 0, 1000, steady_device_ns=10, steady_window_ns=100)
    idle = HostIdle(100, 90, 40, (host_activity("data_loading", 2, 40),))
    assert "dispatch less often" in verdict_text(occupancy, idle)


def test_a_profile_in_which_nothing_ran(make_profile) -> None:
    text = summary_of(make_profile(tables={}))
    assert "Nothing ran on the device: did the program move" in text
    assert "Module" not in text


def test_of_a_program_that_failed_nobody_asks_why_nothing_ran(make_profile) -> None:
    text = summary_of(make_profile(tables={}, exit_status=1))
    assert "Nothing had run on the device when the command ended." in text
    assert "did the program" not in text


def test_an_imported_profile_without_executions_asks_nothing_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "system.json").write_text(json.dumps(system_profile()))
    import_traces([tmp_path / "system.json"], tmp_path / "system.nprof")
    lines = summary_of(tmp_path / "system.nprof").splitlines()
    assert "No execution on a NeuronCore is in what was imported." in lines


def test_a_profile_of_the_device_alone(tmp_path: Path) -> None:
    (tmp_path / "device.json").write_text(json.dumps(device_profile()))
    import_traces([tmp_path / "device.json"], tmp_path / "device.nprof")
    lines = summary_of(tmp_path / "device.nprof").splitlines()
    assert "The device alone was profiled: 500 ns." in lines
    tensor = next(line for line in lines if line.startswith("Tensor"))
    assert tensor.endswith("280 ns           56.0 %        56.0 %")


def test_lines_inside_kernels_stand_below_those_that_call_them(make_profile, tiny_tables) -> None:
    text = summary_of(make_profile(tables=kernel_tables(tiny_tables)))
    called, inside = text.index("Source line"), text.index("Inside kernels")
    assert called < inside < text.index("kernel.py:7", inside) < text.index("kernel.py:8", inside)
    assert "Inside kernels" not in summary_of(make_profile("plain.nprof"))


def test_it_fits_into_80_columns_without_colour_whatever_the_names(make_profile, tiny_tables) -> None:
    from neuron_profile.analysis.identity import identify
    from neuron_profile.analysis.overview import make_overview
    from neuron_tools import open_profile

    long = "/" + "a_very_long_module_name" * 8
    framework = {
        **tiny_tables["FrameworkInstruction"],
        "layer": [long] * 3,
        "framework_name": ["x" * 200] * 3,
    }
    tables = {
        **tiny_tables,
        "FrameworkInstruction": framework,
        "StackFrameFileName": {"id": ["1"], "name": ["/p" * 100 + ".py"]},
    }
    stream = io.StringIO()
    with open_profile(make_profile(tables=tables)) as profile:
        print_summary(Console(file=stream, width=80), identify(profile), make_overview(profile))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in stream.getvalue()
    assert any("100 ns" in line and "50.0 %" in line for line in lines)


def test_names_are_text_and_never_markup(make_profile, tiny_tables) -> None:
    framework = {**tiny_tables["FrameworkInstruction"], "framework_name": ["[bold]x[/bold]", "[/]", "[red]"]}
    text = summary_of(make_profile(tables={**tiny_tables, "FrameworkInstruction": framework}))
    assert all(name in text for name in ("[bold]x[/bold]", "[/]", "[red]"))


def test_bars_are_exact_to_an_eighth_of_a_cell() -> None:
    assert [bar_text(fraction, 4) for fraction in (0, 1 / 32, 0.5, 1, 7)] == [
        "    ",
        "▏   ",
        "██  ",
        "████",
        "████",
    ]


def hotspots(*charges: tuple[str, float]) -> Hotspots:
    rows = tuple(Charge(Origin(module, "op", False, ""), ns, 1) for module, ns in charges)
    total = sum(ns for _, ns in charges)
    return Hotspots(total, 0, 0, 0, module_tree(Charges(rows, 0)), (), ())


def labels(found: Hotspots) -> list[tuple[int, str]]:
    return [(depth, label) for depth, label, _ in module_rows(found)]


def test_modules_with_one_child_share_a_row() -> None:
    assert labels(hotspots(("/a/b/c", 5), ("/a/b/d", 3))) == [(0, "a/b"), (1, "c"), (1, "d")]


def test_small_modules_have_no_row_and_the_rest_has_one() -> None:
    assert labels(hotspots(("/big", 1000), ("/small", 1), ("", 50))) == [(0, "big"), (0, "(outside modules)")]


def test_a_compiled_program_is_not_told_to_compile() -> None:
    from neuron_profile.analysis.occupancy import Occupancy
    from neuron_profile.reports.summary_text import verdict_text

    eager = verdict_text(Occupancy(9, 1, 20, 1000, 0, 1000))
    compiled = verdict_text(Occupancy(9, 1, 20, 1000, 0, 1000, compiled_graphs=1))
    assert "torch.compile" in eager
    assert "torch.compile" not in compiled


def test_peak_memory_is_told_by_what_it_was_held_for(make_profile, tiny_tables):
    count = 2
    events = {
        "event_idx": [0, 1], "timestamp": [10, 20], "kind": ["allocate"] * count, "address": [1, 2],
        "size": [4_000, 1_000], "held_bytes": [4_000, 5_000], "category": ["activation", "other"],
        "process_idx": [0] * count, "pcore_idx": [0] * count,
    }  # fmt: skip
    text = summary_of(make_profile(tables={**tiny_tables, "MemoryEvent": events}))
    told = "Peak memory  5.00 kB, reached after 20 ns\n             activation 80.0 %, other 20.0 %\n"
    assert told in text


def test_ranks_that_wait_for_one_of_them_are_told_its_number() -> None:
    occupancy = Occupancy(
        executions=8, cores=2, device_ns=400, window_ns=1000, host_wait_ns=0, host_ns=1000, awaited_rank=1
    )
    text = verdict_text(occupancy)
    assert text.startswith("Waiting for rank 1: the devices idled 60.0 % of the time")
    assert "torch.compile" not in text


@pytest.mark.parametrize(("ends", "further"), [([300], False), ([300, 420], True)])
def test_further_tokens_are_told_where_a_request_has_some(
    make_profile, tiny_tables, ends: list[int], further: bool
) -> None:
    spans = [("request a", 100, 900), *(("token a", end - 50, end) for end in ends)]
    names, starts, stops = (list(column) for column in zip(*spans))
    columns = {"name": names, "start_ts": starts, "end_ts": stops, "kind": ["range"] * len(spans)}
    indices = {name: [0] * len(spans) for name in ("process_idx", "thread_idx")}
    lengths = {"duration_ns": [stop - start for start, stop in zip(starts, stops)]}
    text = summary_of(make_profile(tables={**tiny_tables, "HostSpan": {**columns, **lengths, **indices}}))
    assert "first after 200 ns" in text
    assert ("each further" in text) is further
