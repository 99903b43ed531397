"""From an alert to the line: a fault runs under look-back, the monitor alerts, the line comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.integration.analysis.planted_faults import FAULTS, Fault
from tests.integration.monitor.prometheus_server import running_exporter, running_prometheus

CLI = [sys.executable, "-m", "neuron_profile.cli"]
MOST_S = 30.0
PATIENCE_S = 240.0
WAITING = '\nimport time\nprint("ready", flush=True)\ntime.sleep(300)\n'
TAG = "the-slow-one"


@contextmanager
def responding(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """`neuron-profile respond` on any port: where it takes alerts, and its process."""
    with subprocess.Popen(
        [*CLI, "respond", "-p", "0", "--folder", str(folder)], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            yield server.stderr.readline().split()[-1], psutil.Process(server.pid)
        finally:
            server.terminate()


@contextmanager
def running(folder: Path, fault: Fault, devices: Path) -> Iterator[None]:
    """A fault's program under look-back, which has done its work and waits."""
    (folder / "train.py").write_text(fault.faulty + WAITING)
    command = [*CLI, "capture", "--last", "30s", "--host-clock", "fixed", "--", sys.executable, "train.py"]
    environment = {**os.environ, "NEURON_PROCESS_TAG": TAG, "NEURON_SYSFS_ROOT": str(devices)}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as capture:  # fmt: skip
        assert capture.stdout is not None
        try:
            assert any(line == "ready\n" for line in iter(capture.stdout.readline, ""))
            yield
        finally:
            os.killpg(capture.pid, signal.SIGTERM)


@contextmanager
def watching(url: str, devices: Path) -> Iterator[psutil.Process]:
    """The monitor with its own rules, of which the one for held cores that do nothing is soon met."""
    command = [sys.executable, "-m", "neuron_monitor.cli", "watch", "--sysfs-root", str(devices)]
    options = ["--idle", "2s", "--period", "500ms", "--to", url]
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as monitor:
        try:
            yield psutil.Process(monitor.pid)
        finally:
            monitor.terminate()


def processor_s(*processes: psutil.Process) -> float:
    """Processor time of processes and of those that they waited for."""
    return sum(sum(process.cpu_times()[:4]) for process in processes)


def rules_in(folder: Path) -> Path:
    """A file with the alert of a process that executed something."""
    rule = {
        "alert": "NeuronExecuted",
        "expr": 'sum by (runtime_tag) (execution_status_total{status_type="completed"}) > 0',
        "annotations": {"summary": "a process executed something"},
    }
    path = folder / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "test", "rules": [rule]}]}))
    return path


def report_in(folder: Path) -> dict[str, object]:
    """The report that comes."""
    path, end = folder / "alerts.jsonl", time.monotonic() + PATIENCE_S
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < end:
        time.sleep(0.1)
    report: dict[str, object] = json.loads(path.read_text().splitlines()[-1])
    return report


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_alert_of_the_monitor_leads_to_the_planted_line(fault: Fault, tmp_path: Path) -> None:
    alerts, devices = tmp_path / "alerts", tmp_path / "devices"
    with responding(alerts) as (url, server), running(tmp_path, fault, devices):
        used_s, began = processor_s(server), time.monotonic()
        with watching(url, devices) as monitor:
            report = report_in(alerts)
            passed_s = time.monotonic() - began
            seconds = processor_s(server, monitor) - used_s
    print(f"{fault.rule}: {report['sentence']}: {seconds:.1f} s of processor time, {passed_s:.1f} s in all")
    assert str(report["reason"]).startswith("NeuronCoreAllocatedIdle: ")
    assert report["rule"] == fault.rule
    assert (Path(str(report["file"])).name, report["line"]) == ("train.py", fault.line)
    assert seconds <= MOST_S


@pytest.mark.slow
def test_an_alert_of_prometheus_leads_to_the_planted_line(tmp_path: Path) -> None:
    fault = next(iter(FAULTS.values()))
    alerts, devices = tmp_path / "alerts", tmp_path / "devices"
    with (
        responding(alerts) as (url, _),
        running(tmp_path, fault, devices),
        running_exporter("--sysfs-root", str(devices)) as port,
        running_prometheus(
            tmp_path, [f"127.0.0.1:{port}"], rules=rules_in(tmp_path), alerts_to=urlsplit(url).netloc
        ),
    ):
        report = report_in(alerts)
    assert str(report["reason"]).startswith("NeuronExecuted: ")
    assert (Path(str(report["file"])).name, report["line"]) == ("train.py", fault.line)
