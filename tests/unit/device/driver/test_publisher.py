"""Processes that come, share cores, and go, also without saying so."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from neuron_tools.device.driver import processes, sweep
from neuron_tools.device.driver.__main__ import load, main, unload
from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.errors import DriverError
from neuron_tools.device.driver.own_files import OwnFiles
from neuron_tools.device.driver.page import PageWriter, page_path, read_page
from neuron_tools.device.driver.processes import PublishedProcess, write_process
from neuron_tools.device.driver.publisher import SLOW_INTERVAL, Publisher
from neuron_tools.device.driver.root import locked
from neuron_tools.device.driver.source import Activity
from neuron_tools.device.driver.totals import Totals
from neuron_tools.device.driver.tree import core_folder, use_core
from tests.unit.device.driver.fake_source import FakeSource, executions, usage

DEAD_PID = 2**22 + 1  # above the largest that Linux gives


class Running:
    """A publisher that publishes when the test says so."""

    made: ClassVar[list[Running]] = []

    def __init__(self, root: Path, lnc: int = 1) -> None:
        self.made.append(self)
        self.root = root
        self.source = FakeSource()
        self.totals = Totals(self.source)
        session = {"target": "trn2", "profile": None, "lnc": lnc}
        self.publisher = Publisher(root, self.source, self.totals, session)
        self.publisher.enter()

    def run(self, index: int = 0, **activity: object) -> None:
        self.source.activities[index] = Activity(**activity)  # type: ignore[arg-type]
        self.publisher.publish()

    def end(self) -> None:
        self.publisher._thread.run = lambda: None  # type: ignore[method-assign]
        self.publisher._thread.start()
        self.publisher.stop()


@pytest.fixture(autouse=True)
def closed_publishers() -> Iterator[None]:
    """Closes what a test's publishers have open: a hundred and fifty files of each core in use."""
    yield
    while Running.made:
        Running.made.pop().publisher._close()


def node(root: Path, path: str, core: int = 0) -> str:
    return (root / f"neuron0/neuron_core{core}" / path).read_text()


def leave_behind(root: Path, core_id: int, counts: CoreCounts) -> None:
    """What a process that was killed leaves."""
    from neuron_tools.device.driver.machine import read_machine

    machine = read_machine(root)
    assert machine is not None
    with locked(root):
        use_core(root, machine, core_id, DEAD_PID)
        write_process(root, PublishedProcess(DEAD_PID, 1, {}, {core_id: counts}))


def test_a_process_shows_the_whole_machine_and_what_it_does_itself(root: Path) -> None:
    running = Running(root)
    running.totals.define(1, usage(first=10))
    running.source.held[0] = Memory(900, 500, 700)
    running.source.elapsed_ns = 12_345
    running.run(executions=executions(0, 4), busy_ns=4_000)
    assert len(list(root.glob("neuron[0-9]*"))) == 16
    assert (root / "neuron0/connected_devices").read_text() == "1, 3, 4, 12\n"
    assert (root / "neuron0/core_count").read_text() == "8"
    assert (root / "neuron3/info/architecture/device_name").read_text() == "Trainium2\n"
    assert node(root, "info/architecture/arch_type", core=7) == "NCv3\n"
    assert node(root, "stats/other_info/inference_count/total", core=7) == "0\n"
    assert node(root, "stats/other_info/inference_count/total") == "4\n"
    assert node(root, "stats/other_info/flop_count/present") == "40\n"
    assert node(root, "stats/other_info/nc_time_in_use/total") == "4\n"
    assert node(root, "stats/clock/elapsed_ns/total") == "12345\n"
    assert node(root, "stats/memory_usage/device_mem/tensors/present") == "500\n"
    assert node(root, "stats/memory_usage/device_mem/peak") == "700\n"
    assert node(root, "stats/latency/device") == "103 4\n"
    assert node(root, "info/timing") == "1\n"
    assert os.listdir(root / "neuron0/neuron_core0/processes") == [str(os.getpid())]
    told = json.loads((root / f"processes/{os.getpid()}.json").read_text())
    assert told["cores"]["0"]["flop_count"] == 40
    assert [model["execution_count"] for model in told["models"]] in ([], [4])


def test_a_logical_core_counts_on_both_of_its_physical_ones(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "2")
    running = Running(root, lnc=2)
    both = replace(usage(), counters=np.concatenate([usage(first=10).counters, usage(first=20).counters]))
    running.totals.define(1, both)
    running.source.held[0] = Memory(900, 500, 700)
    running.run(executions=executions(0, 4), busy_ns=4_000)
    assert [node(root, "stats/other_info/flop_count/present", core=core) for core in (4, 5)] == [
        "40\n",
        "80\n",
    ]
    assert [node(root, "stats/other_info/inference_count/total", core=core) for core in (4, 5)] == [
        "4\n",
        "0\n",
    ]
    assert node(root, "stats/memory_usage/device_mem/tensors/present", core=4) == "500\n"
    told = json.loads((root / f"processes/{os.getpid()}.json").read_text())
    assert (told["logical_core_size"], told["reserved_cores"], sorted(told["cores"])) == (
        2,
        [4, 5],
        ["4", "5"],
    )


def test_memory_that_is_given_back_is_not_present_any_more(root: Path) -> None:
    running = Running(root)
    for held, text in ((Memory(10**6, 10**6, 10**6), "1000000\n"), (Memory(10**6, 5, 10**6), "5\n")):
        running.source.held[0] = held
        running.publisher.publish()
        assert node(root, "stats/memory_usage/device_mem/tensors/present") == text
    assert node(root, "stats/memory_usage/device_mem/tensors/peak") == "1000000\n"


def test_the_last_process_takes_the_tree_with_it(root: Path) -> None:
    running = Running(root)
    running.run(executions=executions(0, 1))
    (root / "something-of-the-users").touch()
    running.end()
    assert os.listdir(root) == ["something-of-the-users"]


def test_a_tree_that_was_loaded_stays_and_keeps_what_was_counted(root: Path) -> None:
    load(root, "trn2")
    running = Running(root)
    running.source.held[0] = Memory(9, 9, 9)
    running.run(untimed_executions=3)
    running.end()
    assert node(root, "stats/status/success/total") == "3\n"
    assert node(root, "stats/status/success/present") == "0\n"
    assert node(root, "stats/memory_usage/device_mem/tensors/present") == "0\n"
    assert node(root, "stats/memory_usage/device_mem/tensors/peak") == "9\n"
    assert os.listdir(root / processes.FOLDER) == []
    assert "removed" in unload(root)
    assert not root.exists()


def test_counts_of_two_processes_on_one_core_are_added(root: Path) -> None:
    running = Running(root)
    running.run(untimed_executions=3)
    leave_behind(root, 0, CoreCounts(status={"success": 10}, device_memory={"tensors": Memory(8, 8, 8)}))
    running.run(untimed_executions=1)
    assert node(root, "stats/status/success/total") == "14\n"
    assert node(root, "stats/memory_usage/device_mem/tensors/present") == "8\n"


def test_a_process_that_comes_within_one_tick_of_the_file_systems_clock_is_seen(root: Path) -> None:
    running = Running(root)
    running.run(untimed_executions=3)
    owners = root / "neuron0/neuron_core0/processes"
    later_ns = time.time_ns() + 3_600_000_000_000
    os.utime(owners, ns=(later_ns, later_ns))
    running.run(untimed_executions=1)
    leave_behind(root, 0, CoreCounts(status={"success": 10}))
    os.utime(owners, ns=(later_ns, later_ns))
    running.run(untimed_executions=1)
    assert node(root, "stats/status/success/total") == "15\n"


def test_host_memory_is_that_of_all_processes_a_second_ago_at_most(root: Path) -> None:
    running = Running(root)
    running.run(untimed_executions=1)
    other = PublishedProcess(DEAD_PID, 1, {}, {0: CoreCounts()})
    with closing(OwnFiles(root, other)) as files:
        for held in (10**12, 3 * 10**12):
            other.host_memory = {"application_memory": Memory(held, held, held)}
            files.write({"timing": True}, (), 0)
            for _ in range(SLOW_INTERVAL):
                running.run()
            told = root / "neuron0/stats/memory_usage/host_mem/application_memory/present"
            assert held < int(told.read_text()) < 2 * held


def test_a_killed_process_is_swept_and_holds_nothing_any_more(root: Path) -> None:
    running = Running(root)
    running.run(untimed_executions=3)
    leave_behind(root, 0, CoreCounts(status={"success": 10}, device_memory={"tensors": Memory(8, 8, 8)}))
    assert sweep(root) == [DEAD_PID]
    assert node(root, "stats/status/success/total") == "13\n"
    assert node(root, "stats/status/success/present") == "3\n"
    assert node(root, "stats/memory_usage/device_mem/tensors/present") == "0\n"
    assert sweep(root) == []
    running.run(untimed_executions=1)
    assert node(root, "stats/status/success/total") == "14\n"


def test_sweeping_after_the_last_killed_process_removes_the_tree(root: Path) -> None:
    load(root, "trn2")
    leave_behind(root, 3, CoreCounts(status={"success": 1}))
    assert sweep(root) == [DEAD_PID]
    assert root.exists()
    assert node(root, "stats/status/success/total", core=3) == "1\n"
    unload(root)
    Running(root)
    leave_behind(root, 0, CoreCounts())
    processes.remove_process(root, os.getpid())
    assert sweep(root) == [DEAD_PID]
    assert not root.exists()


def test_a_cut_off_file_of_a_dead_process_goes_too(root: Path) -> None:
    running = Running(root)
    running.run(untimed_executions=1)
    (root / f"processes/{DEAD_PID}.json").write_text("{")
    (root / f"processes/{DEAD_PID}.tmp").write_text("{")
    assert sweep(root) == [DEAD_PID]
    assert published(root) == [f"{os.getpid()}.counters", f"{os.getpid()}.json"]


def published(root: Path) -> list[str]:
    return sorted(os.listdir(root / processes.FOLDER))


def test_a_tree_that_somebody_removed_is_made_again(root: Path) -> None:
    import shutil

    running = Running(root)
    running.run(untimed_executions=1)
    shutil.rmtree(root)
    running.publisher._publish_again()
    running.run(untimed_executions=1)
    assert node(root, "stats/status/success/total") == "2\n"


def test_another_drivers_tree_is_left_alone(root: Path) -> None:
    (root / "neuron0").mkdir(parents=True)
    with pytest.raises(DriverError, match="NEURON_SYSFS_ROOT"):
        Running(root)
    assert os.listdir(root / "neuron0") == []


def test_a_process_that_asked_for_a_number_of_cores_keeps_off_those_of_others(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(root, "trn2")
    process = PublishedProcess(os.getppid(), processes.start_ticks(os.getppid()) or 0)
    process.rest = {"reserved_cores": [0, 1]}
    write_process(root, process)
    monkeypatch.setenv("NEURON_RT_NUM_CORES", "2")
    running = Running(root)
    running.run(1, untimed_executions=1)
    assert node(root, "stats/status/success/total", core=3) == "1\n"
    assert core_folder(root, running.publisher._machine, 0).is_symlink()  # type: ignore[arg-type]


def test_the_command_loads_and_unloads(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEURON_SYSFS_ROOT", str(root))
    assert main(["load", "--target", "inf2"]) == 0
    assert "inf2.48xlarge: 12 devices" in capsys.readouterr().out
    assert main(["load", "--target", "nothing"]) != 0
    assert "nothing" in capsys.readouterr().err
    running = Running(root)
    running.run(untimed_executions=1)
    assert main(["unload"]) == 1
    assert str(os.getpid()) in capsys.readouterr().err
    running.end()
    assert main(["unload"]) == 0
    assert main(["sweep"]) == 0
    monkeypatch.setenv("NEURON_SYSFS_ROOT", "")
    assert main(["load"]) == 2


def test_a_tree_whose_removal_was_cut_off_is_made_anew(root: Path) -> None:
    Running(root)
    for path in (root / processes.FOLDER, root / "neuron0"):
        shutil.rmtree(path)
    running = Running(root)
    running.run(executions=executions(0))
    assert (root / "neuron0/core_count").read_text() == "8"
    running.end()


def test_a_full_disk_is_told_once_and_survived(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(root)
    running.run(untimed_executions=1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        patched.setattr(PageWriter, "write", full)
        running.source.activities[0] = Activity(untimed_executions=2)
        running.publisher._publish_again()
        running.publisher._publish_again()
    assert ["No space left" in str(each.message) for each in told] == [True]
    running.publisher._publish_again()
    page = read_page(page_path(root, os.getpid()))
    assert page is not None
    assert page.cores[0].status == {"success": 3}
    assert node(root, "stats/status/success/total") == "3\n"
