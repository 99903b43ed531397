"""A logical core of two physical ones takes the time, and counts the calls, of one."""

import pytest

from neuron_profile.analysis.communication import measure_communication
from neuron_profile.analysis.occupancy import measure_occupancy
from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.roofline import make_roofline
from neuron_profile.analysis.time.active import engine_active_ns
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools import open_profile

OF_CORES = ("Instruction", "FrameworkInstruction", "DmaPacketAggregated", "ActiveTime")
REFERENCES = ("id", "raw_framework_id", "trigger")


@pytest.fixture
def pair(make_profile, tiny_tables):
    """The tiny profile, whose second physical core does the same as the first."""
    tables = {
        name: _doubled(columns) if name in OF_CORES else columns for name, columns in tiny_tables.items()
    }
    events = {name: list(values) for name, values in tiny_tables["SystemProfileEvents"].items()}
    running = [place for place, name in enumerate(events["name"]) if name == "nc_exec_running"]
    for name, values in events.items():
        values += [(1 << 46 | place if name == "id" else values[place]) for place in running]
    events["nc_idx"][-len(running) :] = [1] * len(running)
    return make_profile("pair.nprof", {**tables, "SystemProfileEvents": events}, lnc=2)


def _doubled(columns):
    other = {name: [1] * len(values) if name == "pcore_idx" else values for name, values in columns.items()}
    for name in REFERENCES:
        if name in other:
            other[name] = [value + 100 for value in other[name]]
    return {name: [*values, *other[name]] for name, values in columns.items()}


def test_a_kernel_on_one_physical_core_keeps_its_active_time(make_profile) -> None:
    with open_profile(make_profile(lnc=2)) as profile:
        assert engine_active_ns(profile) == {"tensor": 80, "dma": 20}


def test_active_time_is_the_mean_of_the_physical_cores_that_did_something(pair) -> None:
    with open_profile(pair) as profile:
        assert engine_active_ns(profile) == {"tensor": 80, "dma": 20}
        assert engine_active_ns(profile, process=7) == {}


def test_a_collective_stands_on_one_physical_core_and_counts_whole(make_profile, tiny_tables) -> None:
    active = {name: [*values, *values] for name, values in tiny_tables["ActiveTime"].items()}
    count = len(active["start_ts"]) // 2
    active["pcore_idx"] = [0] * count + [1] * count
    moving = {"start_ts": 1400, "end_ts": 1450, "duration_ns": 50, "engine": "cc", "pcore_idx": 0}
    for name, values in active.items():
        values.append(moving.get(name, 0))
    collective = {
        "start_ts": [1400], "end_ts": [1450], "duration_ns": [50], "operation": ["AllReduce"],
        "process_idx": [0], "pcore_idx": [0], "algorithm": ["ring"], "num_elements": [8], "op_id": [0],
        "dtype": ["float32"], "stream_id": [0], "stream_index": [0], "trigger_engine": ["host"],
    }  # fmt: skip
    tables = {**tiny_tables, "ActiveTime": active, "CcOp": collective}
    with open_profile(make_profile(tables=tables, lnc=2)) as profile:
        shown = {engine.name: engine.active_ns for engine in make_overview(profile).engines}
        assert shown["Collectives"] == measure_communication(profile).busy_ns == 50
        assert shown["Tensor"] == 80


def test_device_time_and_counts_are_those_of_one_core(pair, make_profile) -> None:
    with open_profile(make_profile()) as one, open_profile(pair) as two:
        assert measure_occupancy(two) == measure_occupancy(one)
        assert charge_device_time(two) == charge_device_time(one)
        middle = (1040, 1240)
        assert charge_device_time(two.slice(*middle)) == charge_device_time(one.slice(*middle))


def test_a_core_without_operation_waits_for_that_of_the_other(make_profile, tiny_tables) -> None:
    """The second core has an operation all through each execution: nothing lies between operations."""
    rows, events = tiny_tables["FrameworkInstruction"], tiny_tables["SystemProfileEvents"]
    running = [place for place, name in enumerate(events["name"]) if name == "nc_exec_running"]
    other = {name: [values[0]] * len(running) for name, values in rows.items()}
    other |= {name: [events[name][place] for place in running] for name in ("start_ts", "end_ts")}
    numbers = [101 + place for place in running]
    other |= {"id": numbers, "raw_framework_id": numbers, "pcore_idx": [1] * len(running)}
    both = {name: [*rows[name], *other[name]] for name in rows}
    with open_profile(make_profile(tables={**tiny_tables, "FrameworkInstruction": both}, lnc=2)) as profile:
        charges = charge_device_time(profile)
    assert (charges.device_ns, charges.unattributed_ns) == (200, 0)
    assert [(charge.device_ns, charge.count) for charge in charges.charges] == [(150, 1), (30, 1), (20, 1)]


def test_an_engine_is_active_for_the_mean_of_both(pair, make_profile) -> None:
    with open_profile(make_profile()) as one, open_profile(pair) as two:
        assert make_overview(two).engines == make_overview(one).engines


def test_the_roofline_is_that_of_both_but_for_the_memory_that_they_share(pair, make_profile) -> None:
    with open_profile(make_profile()) as one, open_profile(pair) as two:
        single, both = make_roofline(one), make_roofline(two)
    assert both.peak_flops["bf16"] == 2 * single.peak_flops["bf16"]
    assert both.sbuf_bytes_per_second == 2 * single.sbuf_bytes_per_second
    assert both.hbm_bytes_per_second == single.hbm_bytes_per_second
