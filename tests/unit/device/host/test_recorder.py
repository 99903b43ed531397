import numpy as np
import pytest

from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.records.capture_log import RECORD_DTYPE, RecordKind


@pytest.fixture
def told():
    """What the recorder defined: stacks and names by number."""
    return {"stacks": {}, "names": {}}


@pytest.fixture
def recorder(tmp_path, told):
    recorder = PythonRecorder(
        tmp_path / "events.bin",
        told["stacks"].__setitem__,
        told["names"].__setitem__,
        fixed_ns_per_dispatch=10,
    )
    yield recorder
    recorder.abandon()


def records(tmp_path):
    return np.fromfile(tmp_path / "events.bin", RECORD_DTYPE)


def test_executions_waits_and_ranges_stand_in_the_log_in_order(recorder, tmp_path):
    end_ns = recorder.execute(executable=7, duration_ns=100, name="step", cores=[0, 3])
    recorder.wait(end_ns)
    recorder.range("epoch", 0, recorder.clock.now_ns())
    recorder.close()
    log = records(tmp_path)
    kinds = [RecordKind.GRAPH, RecordKind.GRAPH, RecordKind.SYNCHRONIZE, RecordKind.RANGE]
    assert log["kind"].tolist() == kinds
    assert log["device"].tolist() == [0, 3, 0, 0]
    assert log["executable"].tolist() == [7, 7, 0, 0]
    assert (log["device_start_ns"][:2] == 10).all()
    assert (log["device_end_ns"][:2] == 110).all()
    assert log["host_end_ns"].tolist() == [10, 10, 110, 110]
    assert (log["sequence"] == -1).all()
    assert recorder.record_count == 4


def test_a_process_may_have_more_devices_than_a_byte_can_count(recorder, tmp_path):
    recorder.execute(7, 100, "step", cores=[255, 256, 511])
    recorder.memory(64, address=1, core=300)
    recorder.close()
    assert records(tmp_path)["device"].tolist() == [255, 256, 511, 300]


def test_executions_side_by_side_begin_together_and_end_each_on_its_own(recorder, tmp_path):
    assert recorder.execute_side_by_side([(7, 100), (8, 300), (7, 200)], "ranks") == 310
    recorder.close()
    log = records(tmp_path)
    assert log["device"].tolist() == [0, 1, 2]
    assert log["executable"].tolist() == [7, 8, 7]
    assert log["device_start_ns"].tolist() == [10, 10, 10]
    assert log["device_end_ns"].tolist() == [110, 310, 210]
    assert log["host_end_ns"].tolist() == [10, 10, 10]


def test_names_and_stacks_are_told_once(recorder, told, tmp_path):
    for _ in range(3):
        recorder.execute(1, 5, "step")
    recorder.execute(1, 5, "other")
    recorder.close()
    assert told["names"] == {1: "step", 2: "other"}
    log = records(tmp_path)
    assert log["name"].tolist() == [1, 1, 1, 2]
    assert len(set(log["stack"][:3])) == 1
    frames = told["stacks"][int(log["stack"][0])]
    assert frames[0][0] == __file__
    assert frames[0][2].endswith("test_names_and_stacks_are_told_once")
    other = told["stacks"][int(log["stack"][3])]
    assert other[0][1] == frames[0][1] + 1


def test_frames_of_internal_folders_are_left_out(tmp_path, told):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "calls.py").write_text("def through(function):\n    return function()\n")
    namespace = {}
    exec(compile((folder / "calls.py").read_text(), str(folder / "calls.py"), "exec"), namespace)
    recorder = PythonRecorder(
        tmp_path / "events.bin",
        told["stacks"].__setitem__,
        told["names"].__setitem__,
        internal_folders=[str(folder)],
    )
    namespace["through"](lambda: recorder.execute(1, 5, "step"))
    recorder.close()
    files = [frame[0] for frame in told["stacks"][1]]
    assert str(folder / "calls.py") not in files
    assert files[0] == __file__


def test_a_log_that_cannot_be_written_says_why_and_goes_on(told):
    recorder = PythonRecorder("/dev/full", told["stacks"].__setitem__, told["names"].__setitem__)
    recorder.execute(1, 5, "step")
    recorder.close()
    assert recorder.error == "No space left on device"
    recorder.execute(1, 5, "step")
