"""Debian's Prometheus for tests: finds it, runs it on the loopback interface, and asks it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

HOW_TO_INSTALL = "This test needs Prometheus and promtool: apt-get install prometheus."
PATIENCE_S = 120.0
PORTS_TO_TRY = 3

# What the panels of AWS's published Grafana dashboard ask (aws-neuron-sdk, src/examples/neuron-monitor).
AWS_PANEL_QUERIES = (
    "instance_info",
    "count(instance_info)",
    "sum(system_vcpu_count)",
    "avg(sum by (instance_id) (system_vcpu_usage_ratio))",
    "avg(system_memory_used_bytes / system_memory_total_bytes)",
    "avg(neuroncore_utilization_ratio)",
    'sum(rate(execution_status_total{status_type="completed"}[1m]))',
    'sum(rate(execution_status_total{status_type!="completed"}[1m]))',
    "avg by (percentile) (execution_latency_seconds)",
    "avg by (neuroncore) (neuroncore_utilization_ratio)",
    "avg by (usage_type) (neuron_runtime_vcpu_usage_ratio)",
    "avg by (memory_location) (sum by (instance_id, memory_location) (neuron_runtime_memory_used_bytes))",
    "avg by (usage_type) (system_vcpu_usage_ratio)",
    "avg(system_memory_used_bytes)",
    "count(neuroncore_utilization_ratio > 0)",
)


def tool(name: str) -> str:
    """Path of `prometheus` or `promtool`; without it, skips the test, but fails it in CI."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(HOW_TO_INSTALL)
        pytest.skip(HOW_TO_INSTALL)
    return found


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PrometheusServer:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, query: str) -> list[Any]:
        """The result of an instant query."""
        with urlopen(f"{self.url}/api/v1/query?{urlencode({'query': query})}", timeout=10) as answer:
            result: list[Any] = json.load(answer)["data"]["result"]
        return result

    def wait_for(self, query: str) -> list[Any]:
        """The result of a query as soon as there is one."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                found = self.ask(query)
            except OSError:
                found = []
            if found:
                return found
            time.sleep(0.2)
        pytest.fail(f"Prometheus has no data for {query}")


@contextmanager
def running_prometheus(
    folder: Path, targets: list[str], *, rules: Path | None = None, alerts_to: str = ""
) -> Iterator[PrometheusServer]:
    """A server that scrapes the targets twice a second, as the job `neuron`.

    Args:
        rules: A file of alerts, which are looked at as often.
        alerts_to: Host and port of what takes them.
    """
    scrape = {"job_name": "neuron", "static_configs": [{"targets": targets}]}
    times = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    configuration: dict[str, Any] = {"global": times, "scrape_configs": [scrape]}
    if rules is not None:
        configuration["rule_files"] = [str(rules)]
        configuration["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alerts_to]}]}]}
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    process, port = _started(folder)
    try:
        yield PrometheusServer(port)
    finally:
        process.terminate()
        process.wait()


def _started(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A server that listens, and its port: another one where somebody took the first meanwhile."""
    for _ in range(PORTS_TO_TRY):
        port = free_port()
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if _is_ready(process, port):
            return process, port
    pytest.fail(f"Prometheus ended {PORTS_TO_TRY} times before it was ready.")


def _is_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the server answers; False if it ended instead."""
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=PATIENCE_S):
                return process.poll() is None
        except OSError:
            time.sleep(0.2)
    process.kill()
    process.wait()
    return False


@contextmanager
def running_exporter(*options: str, **environment: str) -> Iterator[int]:
    """`neuron-monitor prometheus` on a free port; gives the port when it listens."""
    process = subprocess.Popen(
        ["neuron-monitor", "prometheus", "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "/metrics" in line, line
        yield int(line.rpartition(":")[2].partition("/")[0])
    finally:
        process.terminate()
        process.wait()
