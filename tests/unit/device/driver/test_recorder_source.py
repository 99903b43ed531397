"""What recorders place, as the publisher asks for it."""

from __future__ import annotations

from pathlib import Path

from neuron_tools.device.driver.latency import bucket_of
from neuron_tools.device.driver.recorder_source import RecorderSource
from neuron_tools.device.host.recorder import PythonRecorder


def recorder(folder: Path, name: str = "events.bin") -> PythonRecorder:
    return PythonRecorder(
        folder / name, lambda *_: None, lambda *_: None, launch_overhead_ns=5, fixed_ns_per_dispatch=10
    )


def test_executions_are_handed_out_once(tmp_path: Path) -> None:
    source, running = RecorderSource(), recorder(tmp_path)
    source.follow(running)
    for executable, duration_ns in ((2, 100), (1, 40), (2, 100)):
        running.execute(executable, duration_ns, "step")
    taken = source.take(0)
    assert taken.executions.tolist() == [0, 1, 2]
    assert taken.busy_ns == 240
    assert taken.latency.sum() == 3
    assert taken.latency[bucket_of(10 + 5 + 100)] == 1  # of the first: dispatch, launch, execution
    assert source.take(0).executions.sum() == 0
    running.close()


def test_each_core_counts_for_itself(tmp_path: Path) -> None:
    source, running = RecorderSource(), recorder(tmp_path)
    source.follow(running, lambda: 2)
    running.execute(1, 100, "sharded", cores=(0, 3))
    assert source.device_count() == 4
    assert [source.take(core).busy_ns for core in range(4)] == [100, 0, 0, 100]
    running.close()


def test_the_first_execution_is_told_before_it_counts(tmp_path: Path) -> None:
    source, running = RecorderSource(), recorder(tmp_path)
    seen: list[int] = []
    source.follow(running, lambda: 1, lambda: seen.append(source.take(0).busy_ns))
    running.execute(1, 100, "a")
    running.execute(1, 100, "b")
    assert seen == [0]
    assert source.take(0).busy_ns == 200
    running.close()


def test_time_is_kept_only_while_something_records(tmp_path: Path) -> None:
    source, first, second = RecorderSource(), recorder(tmp_path), recorder(tmp_path, "second.bin")
    assert (source.is_timed(), source.now_ns(), source.device_count()) == (False, 0, 1)
    source.follow(first)
    first.execute(1, 100, "a")
    assert source.is_timed()
    assert source.now_ns() == 115
    source.follow(second)
    first.execute(1, 100, "not counted any more")
    second.execute(1, 70, "b")
    assert source.take(0).busy_ns == 170
    source.follow(None)
    assert not source.is_timed()
    first.close()
    second.close()
