"""From an alert to the line: a fault runs under look-back, an alert names its process, the line comes."""

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
from urllib.request import Request, urlopen

import psutil
import pytest

from tests.integration.analysis.planted_faults import FAULTS, Fault

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
def running(folder: Path, fault: Fault) -> Iterator[None]:
    """A fault's program under look-back, which has done its work and waits."""
    (folder / "train.py").write_text(fault.faulty + WAITING)
    command = [*CLI, "capture", "--last", "30s", "--host-clock", "fixed", "--", sys.executable, "train.py"]
    environment = {**os.environ, "NEURON_PROCESS_TAG": TAG}
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


def alert(url: str, tag: str) -> None:
    """What Alertmanager sends when one alert fires."""
    labels = {"alertname": "NeuronLatencyRegression", "runtime_tag": tag, "instance": "host:8000"}
    told = {"status": "firing", "labels": labels, "annotations": {"summary": "p99 is over 1.5 times"}}
    content = json.dumps({"version": "4", "status": "firing", "alerts": [told]}).encode()
    with urlopen(Request(url, content, {"Content-Type": "application/json"}), timeout=10) as answer:
        assert answer.status == 202


def report_in(folder: Path) -> dict[str, object]:
    """The report that comes."""
    path, end = folder / "alerts.jsonl", time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.1)
    report: dict[str, object] = json.loads(path.read_text().splitlines()[-1])
    return report


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_alert_leads_to_the_planted_line(fault: Fault, tmp_path: Path) -> None:
    with responding(tmp_path / "alerts") as (url, server), running(tmp_path, fault):
        used = server.cpu_times()
        alert(url, TAG)
        report = report_in(tmp_path / "alerts")
        now = server.cpu_times()
    seconds = now.user + now.system - used.user - used.system
    print(f"{fault.rule}: {report['sentence']}: {seconds:.1f} s of processor time")
    assert report["rule"] == fault.rule
    assert (Path(str(report["file"])).name, report["line"]) == ("train.py", fault.line)
    assert seconds <= MOST_S
