import os
import subprocess
import time

import pytest

from neuron_monitor.api.container import Container, read_container
from neuron_monitor.api.host import (
    CPU_KINDS,
    READS_BETWEEN_QUESTIONS,
    Host,
    cpu_percents,
    parse_meminfo,
    parse_stat,
)

STAT = b"""cpu  40 0 20 140 0 0 0 0 0 0
cpu0 30 0 10 60 0 0 0 0 0 0
cpu1 10 0 10 80 0 0 0 5 0 0
intr 1 2 3
ctxt 12345
btime 1
"""
MEMINFO = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n"


@pytest.fixture
def processes(tmp_path):
    folder = tmp_path / "proc"
    (folder / "77").mkdir(parents=True)
    (folder / "stat").write_bytes(STAT)
    (folder / "meminfo").write_text(MEMINFO)
    name = "a b) c"
    (folder / "77" / "stat").write_text(f"77 ({name}) S {' '.join('0' * 10)} 300 100 0 0\n")
    return folder


@pytest.fixture
def group(tmp_path):
    folder = tmp_path / "cgroup"
    folder.mkdir()
    return folder


def test_processors_and_context_switches():
    cpus, switches = parse_stat(STAT)
    assert cpus == {0: (30, 0, 10, 60, 0, 0, 0), 1: (10, 0, 10, 80, 0, 0, 0)}
    assert switches == 12345


def test_memory_that_is_given_back_on_demand_is_not_in_use(processes, group):
    host = Host(str(processes), str(group)).read()
    assert (host.memory_total_bytes, host.memory_used_bytes) == (1000 * 1024, 600 * 1024)
    assert (host.swap_total_bytes, host.swap_used_bytes) == (50 * 1024, 30 * 1024)


def test_processor_time_of_processes_whatever_they_are_called(processes, group):
    ticks = os.sysconf("SC_CLK_TCK")
    times = Host(str(processes), str(group)).process_times([77, 78])
    assert (times[77].user_s, times[77].system_s) == (300 / ticks, 100 / ticks)
    assert 78 not in times


def test_a_file_system_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        Host(str(tmp_path / "none")).read()


def test_lines_that_are_cut_off_do_not_break_the_parser():
    assert parse_meminfo(b"MemTotal: 10 kB\nMemFr") == {"MemTotal": 10240}
    assert parse_stat(b"") == ({}, 0)


def test_percents_of_a_clock_that_went_back_are_zero():
    later, earlier = tuple(range(10, 17)), (0,) * 7
    assert cpu_percents(later, earlier) == dict.fromkeys(CPU_KINDS, 0.0)


def test_percents_sum_to_a_hundred():
    assert cpu_percents((0,) * 7, (5, 0, 5, 30, 0, 0, 0)) == {
        **dict.fromkeys(CPU_KINDS, 0.0),
        "user": 12.5,
        "system": 12.5,
        "idle": 75.0,
    }


def test_a_container_of_version_2(group):
    for name, text in {
        "memory.max": "500000\n",
        "memory.current": "300000\n",
        "memory.stat": "anon 5\ninactive_file 100000\n",
        "memory.swap.max": "0\n",
        "memory.swap.current": "0\n",
        "cpu.max": "50000 100000\n",
        "cpu.stat": "usage_usec 9\nuser_usec 6\nsystem_usec 3\n",
    }.items():
        (group / name).write_text(text)
    assert read_container(str(group)) == Container(500000, 200000, 0, 0, 0.5, 6, 3)


def test_a_container_of_version_1(group):
    for name, text in {
        "memory/memory.limit_in_bytes": "500000\n",
        "memory/memory.usage_in_bytes": "300000\n",
        "memory/memory.stat": "total_inactive_file 50000\n",
        "cpu/cpu.cfs_quota_us": "200000\n",
        "cpu/cpu.cfs_period_us": "100000\n",
        "cpuacct/cpuacct.usage_user": "7000\n",
        "cpuacct/cpuacct.usage_sys": "2000\n",
    }.items():
        (group / name).parent.mkdir(exist_ok=True)
        (group / name).write_text(text)
    found = read_container(str(group))
    assert (found.memory_limit_bytes, found.memory_used_bytes, found.cpu_limit) == (500000, 250000, 2.0)
    assert (found.user_us, found.system_us) == (7, 2)


@pytest.mark.parametrize("limit", ["max", "9223372036854771712", ""])
def test_no_limit_is_none(group, limit):
    (group / "memory.max").write_text(limit)
    assert read_container(str(group)).memory_limit_bytes is None


def test_a_containers_limit_stands_for_the_machine(processes, group):
    (group / "memory.max").write_text("512000\n")
    (group / "memory.current").write_text("102400\n")
    inside = Host(str(processes), str(group)).read()
    assert (inside.memory_total_bytes, inside.memory_used_bytes) == (512000, 102400)
    outside = Host(str(processes), str(group), sees_container=False).read()
    assert outside.memory_total_bytes == 1000 * 1024


def test_a_process_that_works_is_read_anew_whether_the_others_sleep_or_not():
    host, own = Host(sees_container=False), os.getpid()
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        for pids in ([own], [own, sleeper.pid, os.getppid()]):
            for _ in range(READS_BETWEEN_QUESTIONS + 3):
                before = host.process_times(pids)[own]
                while time.process_time() < before.user_s + before.system_s + 0.05:
                    pass
                assert sum(host.process_times(pids)[own]) > sum(before)
        sleeper.kill()
    host.close()


def test_times_of_processes_that_sleep_are_the_same_object():
    host = Host(sees_container=False)
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        times = None
        while host.process_times([sleeper.pid]) is not times:  # It is being started.
            times = host.process_times([sleeper.pid])
        assert times.keys() == {sleeper.pid}
        sleeper.kill()
    assert host.process_times([sleeper.pid]) == {}
    host.close()


def test_where_processes_have_other_numbers_all_are_read(tmp_path):
    (tmp_path / "self").symlink_to("1234567")
    (tmp_path / "7").mkdir()
    stat = tmp_path / "7/stat"
    stat.write_text("7 (x) S 1 2 3 4 5 6 7 8 9 10 100 200 0 0\n")
    host = Host(str(tmp_path), sees_container=False)
    first = host.process_times([7])[7]
    stat.write_text("7 (x) S 1 2 3 4 5 6 7 8 9 10 300 200 0 0\n")
    assert host.process_times([7])[7].user_s == 3 * first.user_s
    host.close()
