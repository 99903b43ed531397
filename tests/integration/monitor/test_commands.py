"""The commands as a user runs them: reports, faults while they run, devices listed, the terminal view."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import duckdb
import pytest

from tests.fixtures.neuron_sysfs import INFERENTIA2, SysfsTree

REPORTS_AWAITED = 1200  # a minute of them


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.fixture
def tree(tmp_path):
    return SysfsTree(tmp_path / "tree", INFERENTIA2, 2)


def monitor(tree, *options):
    return subprocess.Popen(
        ["neuron-monitor", "--sysfs-root", str(tree.root), "--period", "50ms", *options],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_reports_are_lines_of_json(tree):
    lines = run("neuron-monitor", "--sysfs-root", str(tree.root), "--period", "20ms", "--count", "3").stdout
    reports = [json.loads(line) for line in lines.splitlines()]
    assert len(reports) == 3
    assert reports[0]["neuron_hardware_info"]["neuron_device_count"] == 2


def test_a_configuration_file_is_followed(tree, tmp_path):
    (tmp_path / "monitor.json").write_text('{"period": "20ms", "system_metrics": [{"type": "memory_info"}]}')
    told = run(
        "neuron-monitor", "-c", str(tmp_path / "monitor.json"), "--sysfs-root", str(tree.root), "--count", "1"
    )
    assert list(json.loads(told.stdout)["system_data"]) == ["memory_info"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["-c", "none.json"], "none.json"),
        (["--period", "soon"], "duration"),
        (["--period", "1s", "-c", "none.json"], "--period"),
        (["--spelling", "klingon"], "klingon"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(options, word):
    told = run("neuron-monitor", *options)
    assert (told.returncode, told.stdout) == (2, "")
    assert word in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_devices_that_vanish_and_come_back_while_it_runs(tree, tmp_path):
    process = monitor(tree)
    try:
        assert _count(process) == 2
        shutil.move(tree.root / "neuron1", tmp_path / "away")
        _wait_until(process, lambda count: count == 1)
        shutil.rmtree(tree.root)
        _wait_until(process, lambda count: count == 0)
        SysfsTree(tree.root, INFERENTIA2, 3)
        _wait_until(process, lambda count: count == 3)
    finally:
        process.kill()
        process.wait()


def test_garbage_everywhere_while_it_runs(tree):
    process = monitor(tree)
    try:
        _count(process)
        for number, path in enumerate(sorted(tree.root.rglob("total"))):
            path.write_bytes([b"", b"\xff\xfe", b"garbage\n", b"-"][number % 4])
        (tree.root / "driver.json").write_text("{")
        (tree.root / "processes" / "1.json").write_text("[")
        for _ in range(REPORTS_AWAITED):
            report = json.loads(process.stdout.readline())
            if "not a number" in report["system_data"]["neuron_device_status"]["error"]:
                break
        else:
            pytest.fail("the reports never told of the garbage")
        assert report["system_data"]["neuron_device_status"]["unreadable"]
    finally:
        process.kill()
        process.wait()


def test_a_reader_that_goes_away_ends_it_quietly(tree):
    process = subprocess.Popen(
        ["neuron-monitor", "--sysfs-root", str(tree.root), "--period", "20ms"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 1
    assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_dashboard_that_ends_writes_its_last_rows(tree, tmp_path, end):
    command = [
        "neuron-monitor", "dashboard", "--sysfs-root", str(tree.root), "--port", "0", "--period", "50ms",
        "--record", str(tmp_path / "history"),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dashboard:
        assert "http://" in dashboard.stdout.readline()
        time.sleep(1)
        dashboard.send_signal(end)
        assert dashboard.wait(timeout=60) in (0, 130)
    ((rows,),) = duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/history/*.parquet'").fetchall()
    assert rows


def test_a_full_disk_is_one_line(tree):
    with open("/dev/full", "w") as full:
        told = subprocess.run(
            ["neuron-monitor", "--sysfs-root", str(tree.root), "--period", "20ms"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert told.returncode == 1
    assert told.stderr == "Error: No space left on device.\n"


@pytest.mark.parametrize("command", ["neuron-monitor", "neuron-ls", "neuron-top"])
def test_help_has_an_example_and_there_is_a_version(command):
    assert "Example" in run(command, "--help").stdout
    assert run(command, "--version").stdout.startswith(command)


def test_devices_are_listed(tree):
    table = run("neuron-ls", "--sysfs-root", str(tree.root), "-t").stdout
    assert "[  0]──[  1]" in table or "[  0]--[  1]" in table
    text = run("neuron-ls", "--sysfs-root", str(tree.root), "-j").stdout
    assert run("neuron-ls", "--sysfs-root", str(tree.root), "--output-format", "json").stdout == text
    told = json.loads(text)
    assert [entry["neuron_device"] for entry in told] == [0, 1]


def test_a_machine_without_devices_says_what_to_do(tmp_path):
    told = run("neuron-ls", "--sysfs-root", str(tmp_path))
    assert (told.returncode, told.stdout) == (1, "")
    assert "load the driver" in told.stderr


@pytest.mark.parametrize("module", ["neuron_monitor.cli", "neuron_monitor.ls_cli", "neuron_monitor.top_cli"])
def test_a_start_imports_nothing_heavy(module):
    heavy = ("torch", "jax", "numpy", "pyarrow", "duckdb", "dash", "plotly", "flask", "textual", "asyncio")
    check = f"import {module}, sys; print([name for name in {heavy} if name in sys.modules])"
    assert run(sys.executable, "-c", check).stdout == "[]\n"


def _count(process):
    return json.loads(process.stdout.readline())["neuron_hardware_info"]["neuron_device_count"]


def _wait_until(process, holds):
    """Read reports until one has as many devices; the process must not end meanwhile."""
    for _ in range(REPORTS_AWAITED):
        if holds(_count(process)):
            return
    pytest.fail("the reports never showed it")
