import neuron_tools
from neuron_profile.analysis.idle_reasons import PARTS, EngineTime, idle_reasons
from neuron_profile.analysis.time import repeats
from tests.unit.neuron_profile.analysis.repeated_graph import repeated_graph


def parts_ns(engine):
    return sum(getattr(engine, part) for part in PARTS)


def test_the_window_of_each_engine_is_divided_to_the_nanosecond(make_profile):
    with neuron_tools.open_profile(make_profile()) as profile:
        engines = idle_reasons(profile)
    assert [engine.engine for engine in engines] == ["Scalar", "Sync", "Tensor", "Vector"]
    assert all(parts_ns(engine) == engine.window_ns == 300 for engine in engines)
    by_name = {engine.engine: engine for engine in engines}
    # Tensor: busy 1010-1050 and 1210-1250 of the executions 1000-1100 and 1200-1300.
    assert by_name["Tensor"] == EngineTime(
        0, 0, "Tensor", 300, busy_ns=80, dma_ns=0, engine_ns=0, other_ns=20, finished_ns=100, host_ns=100
    )
    assert by_name["Sync"].busy_ns == 2
    assert by_name["Sync"].finished_ns == 198


def test_waits_are_told_by_their_cause(make_profile, tiny_tables):
    def waiting(tables):
        rows = tables["Instruction"]
        dma = [6 if number == 12 else 0 for number in rows["id"]]
        event = [9 if number == 14 else 0 for number in rows["id"]]
        return {**tables, "Instruction": {**rows, "dma_wait_time_ns": dma, "evt_wait_time_ns": event}}

    path = make_profile("waiting.nprof", waiting(tiny_tables))
    with neuron_tools.open_profile(path) as profile:
        (tensor,) = [engine for engine in idle_reasons(profile) if engine.engine == "Tensor"]
    assert (tensor.dma_ns, tensor.engine_ns, tensor.other_ns) == (6, 9, 5)
    assert parts_ns(tensor) == 300


def test_one_execution_of_a_graph_stands_for_all(make_profile, tiny_tables, monkeypatch):
    with neuron_tools.open_profile(make_profile(tables=repeated_graph(tiny_tables))) as profile:
        expected = idle_reasons(profile)
        monkeypatch.setattr(repeats, "REPEATED_FROM", 0)
        assert repeats.find_repeats(profile, (0, 0))
        assert idle_reasons(profile) == expected
    assert {row.window_ns for row in expected} == {2100}
