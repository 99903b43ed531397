from __future__ import annotations

from neuron_tools.device.driver.counts import Memory
from neuron_tools.device.driver.source import Activity
from neuron_tools.device.driver.totals import Totals
from tests.unit.device.driver.fake_source import FakeSource, executions, usage


def test_executions_are_multiplied_by_what_one_of_them_adds() -> None:
    source = FakeSource()
    totals = Totals(source)
    totals.define(1, usage(first=10))
    totals.define(3, usage(first=100, duration_ns=1000))
    source.activities[0] = Activity(executions=executions(2, 3, 0, 1), busy_ns=1300, bytes_to_device=7)
    totals.update()
    core = totals.counts()[0]
    assert core.flop_count == 3 * 10 + 100
    assert core.throttled_ns == 3 * 11 + 101
    assert core.traffic["hbm_read_bytes"] == 3 * 12 + 102
    assert core.traffic["host_to_device_bytes"] == 7
    assert core.engine_busy_ns["tensor"] == 3 * 15 + 105
    assert core.status == {"success": 6}
    assert (core.inference_count, core.model_load_count, core.busy_ns) == (6, 2, 1300)
    assert core.latency["device"] == {103: 3, 1023: 1}


def test_only_used_cores_are_told() -> None:
    source = FakeSource()
    totals = Totals(source)
    assert totals.counts() == {}
    source.held[1] = Memory(5, 5, 5)
    totals.update()
    assert list(totals.counts()) == [1]


def test_executables_of_two_sessions_with_one_number_are_two() -> None:
    source = FakeSource()
    totals = Totals(source)
    for name, first in (("one", 1), ("two", 1000)):
        totals.begin_session()
        totals.define(1, usage(name, first=first))
        source.activities[0] = Activity(executions=executions(0, 1))
        source.elapsed_ns = 50
        totals.end_session()
        source.elapsed_ns = 0
    assert totals.counts()[0].flop_count == 1001
    assert totals.counts()[0].model_load_count == 2
    models = totals.models()
    assert [(model.name, model.number) for model in models] == [("one", 1), ("two", 1)]
    assert models[0].session != models[1].session
    assert totals.elapsed_ns == 100


def test_failures_and_refused_memory_have_a_status_of_their_own() -> None:
    source = FakeSource()
    totals = Totals(source)
    source.activities[0] = Activity(untimed_executions=4, failed_executions=2, refused_allocations=1)
    totals.update()
    core = totals.counts()[0]
    assert core.status == {"success": 4, "exec_bad_input": 2, "resource_error": 1}
    assert core.inference_count == 6


def test_constants_add_up_and_the_scratchpad_is_shared() -> None:
    source = FakeSource()
    totals = Totals(source)
    totals.define(1, usage(constant_bytes=5, scratchpad_bytes=70))
    totals.define(2, usage(constant_bytes=6, scratchpad_bytes=40))
    for _ in range(2):
        source.activities[0] = Activity(executions=executions(0, 1, 1))
        totals.update()
    memory = totals.counts()[0].device_memory
    assert memory["constants"] == Memory(11, 11, 11)
    assert memory["model_shared_scratchpad"] == Memory(70, 70, 70)


def test_the_most_run_models_come_first() -> None:
    source = FakeSource(1)
    totals = Totals(source)
    for number in range(1, 101):
        totals.define(number, usage(f"m{number}"))
    source.activities[0] = Activity(executions=executions(*range(101)))
    totals.update()
    models = totals.models()
    assert [model.name for model in models[:2]] == ["m100", "m99"]
    assert len(models) == 64
