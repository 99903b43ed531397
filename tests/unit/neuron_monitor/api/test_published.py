import os
import time
from types import SimpleNamespace

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from neuron_monitor.api import published as published_module
from neuron_monitor.api.published import PublishedProcesses, is_alive, parse_process
from neuron_tools.device.driver import modified
from tests.fixtures.neuron_sysfs import TRAINIUM2, SysfsTree, process_file, start_ticks

DEAD = 2**22 - 3
LATER_NS = time.time_ns() + 3_600_000_000_000  # however slow the machine: no change is older than a tick


@pytest.fixture
def published(simulated):
    return PublishedProcesses(str(simulated.root / "processes"))


def test_a_process_that_lives_is_there(simulated, published, pid):
    simulated.publish(pid, [0, 1], tag="pretrain", rank=3)
    (process,) = published.read(0)
    assert (process.pid, process.tag, process.rank, set(process.cores)) == (pid, "pretrain", 3, {0, 1})


def test_the_file_of_a_killed_process_does_not_count(simulated, published):
    simulated.publish(DEAD, [0], start_ticks=1)
    assert published.read(0) == ()


def test_a_later_process_of_the_same_pid_is_another(simulated, published, pid):
    simulated.publish(pid, [0], start_ticks=start_ticks(pid) + 1)
    assert published.read(0) == ()
    assert not is_alive(pid, start_ticks(pid) + 1)


def test_what_did_not_change_is_the_same_object(simulated, published, pid):
    simulated.publish(pid, [0])
    first = published.read(0)
    assert published.read(600_000_000) is first
    assert published.read(5_000_000_000)[0] is first[0]


def test_a_new_publication_is_read(simulated, published, pid):
    simulated.publish(pid, [0])
    published.read(0)
    simulated.publish(pid, [0], elapsed_ns=77)
    assert published.read(1_000_000_000)[0].elapsed_ns == 77


def test_a_change_within_the_same_tick_of_the_file_systems_clock_is_read(simulated, published, pid):
    folder = simulated.root / "processes"
    simulated.publish(pid, [0])
    os.utime(folder, ns=(LATER_NS, LATER_NS))
    published.read(0)
    simulated.publish(pid, [0], elapsed_ns=77)
    os.utime(folder, ns=(LATER_NS, LATER_NS))
    assert published.read(1_000_000_000)[0].elapsed_ns == 77


def test_a_change_while_a_long_reading_goes_on_is_read(simulated, published, pid, monkeypatch):
    clock_ns = [LATER_NS]
    monkeypatch.setattr(modified, "time", SimpleNamespace(time_ns=lambda: clock_ns[0]))
    place = simulated.publish(pid, [0], elapsed_ns=70)
    read = published_module._read_whole

    def read_long(path, size):
        text = read(path, size)
        if path == str(place):
            clock_ns[0] += 10**9
        return text

    monkeypatch.setattr(published_module, "_read_whole", read_long)
    for elapsed_ns in (70, 77):
        place.write_text(place.read_text().replace('"elapsed_ns": 70', f'"elapsed_ns": {elapsed_ns}'))
        os.utime(place, ns=(LATER_NS, LATER_NS))
        os.utime(place.parent, ns=(clock_ns[0], clock_ns[0]))
        (process,) = published.read(clock_ns[0])
        assert process.elapsed_ns == elapsed_ns


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b'{"pid": "x"}', b'{"pid": 1, "cores": {"a": {}}}', b"\xff\x00" * 50]
)
def test_a_file_cut_off_or_of_another_form_is_a_fault_and_no_process(simulated, published, pid, text):
    simulated.publish(pid, [0])
    (simulated.root / "processes/999.json").write_bytes(text)
    assert [process.pid for process in published.read(0)] == [pid]
    assert published.faults[0].path.endswith("999.json")


@settings(deadline=None)
@given(cut=st.integers(min_value=0, max_value=400))
def test_every_cut_of_a_file_is_refused(cut):

    tree = SysfsTree.__new__(SysfsTree)
    tree.chip, tree.lnc = TRAINIUM2, 1
    text = orjson.dumps(process_file(1, tree, [0]))
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        parse_process(text[: min(cut, len(text) - 1)])


def test_keys_that_are_not_known_are_null(simulated, published, pid):
    simulated.publish(pid, [0], tag=None, models=None, host_memory=None, command=None, elapsed_ns=None)
    (process,) = published.read(0)
    assert (process.tag, process.models, process.elapsed_ns) == (str(pid), (), 0)


def test_models_are_records(simulated, published, pid):
    simulated.publish(pid, [0], models=[{"name": "step", "uuid": "ab", "model_id": 7, "core": 0}])
    (model,) = published.read(0)[0].models
    assert (model.name, model.uuid, model.model_id, model.is_running) == ("step", "ab", 7, False)


def test_no_folder_is_no_processes(tmp_path):
    assert PublishedProcesses(str(tmp_path / "none")).read(0) == ()


def test_a_thousand_processes(simulated, published, pid):
    for number in range(1000):
        simulated.publish(pid, [number % 8]).rename(simulated.root / f"processes/{100_000 + number}.json")
    assert len(published.read(0)) == 1000
    assert published.faults == []
