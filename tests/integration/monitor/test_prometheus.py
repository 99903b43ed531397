"""The exporter with the real Prometheus: what it scrapes, AWS's own panels, and the alert rules."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.fixtures.neuron_sysfs import INFERENTIA2, TRAINIUM1, TRAINIUM2, SysfsTree, process_core
from tests.integration.monitor.prometheus_server import (
    AWS_PANEL_QUERIES,
    PATIENCE_S,
    free_port,
    running_exporter,
    running_prometheus,
    tool,
)

PROJECT = Path(__file__).parents[3]
DEPLOY = PROJECT / "monitor" / "deploy"
# A name that AWS chose, which promtool takes for a histogram's.
AWS_NAME_THAT_PROMTOOL_DISLIKES = "system_vcpu_count"


def publish(tree, second):
    """A process that works on two cores half of the time."""
    cores = {
        str(core): process_core(
            tree,
            core,
            status={"success": 10 * second},
            inference_count=10 * second,
            busy_ns=second * 500_000_000,
            latency={"total": {"4000000": 10 * second}, "device": {"3000000": 10 * second}},
        )
        for core in (0, 1)
    }
    tree.publish(
        os.getpid(), [0, 1], tag="train", cores=cores, elapsed_ns=second * 10**9, published_at=float(second)
    )


def test_prometheus_gets_what_awss_own_panels_ask(tmp_path):
    tree = SysfsTree(tmp_path / "tree")
    publish(tree, 1)
    with (
        running_exporter("--sysfs-root", str(tree.root), "--period", "300ms") as port,
        running_prometheus(tmp_path, [f"127.0.0.1:{port}"]) as server,
    ):
        server.wait_for("instance_info")
        for second in range(2, 5):
            publish(tree, second)
            server.wait_for(f'execution_status_total{{status_type="completed"}} >= {20 * second}')
        for query in AWS_PANEL_QUERIES:
            assert server.wait_for(query), query
        assert server.ask('neuroncore_utilization_ratio{neuroncore="0"}')[0]["value"][1] == "0.5"


def test_our_dashboard_asks_for_series_that_are_there(tmp_path):
    dashboard = json.loads((DEPLOY / "grafana" / "neuron-devices.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(queries) > 20
    variables = {"$instance": ".*", "$process": ".*", "$__rate_interval": "1m"}
    tree = SysfsTree(tmp_path / "tree")
    publish(tree, 1)
    tree.write("neuron0/stats/power/utilization", "POWER_STATUS_VALID,1700000000,10.00,30.00,20.00")
    with (
        running_exporter("--sysfs-root", str(tree.root), "--period", "300ms") as port,
        running_prometheus(tmp_path, [f"127.0.0.1:{port}"]) as server,
    ):
        server.wait_for("instance_info")
        publish(tree, 2)
        server.wait_for("execution_latency_seconds")
        for query in queries:
            for name, value in variables.items():
                query = query.replace(name, value)
            # Thresholds leave nothing where nothing is wrong; the series themselves must be there.
            assert server.wait_for(re.sub(r" > \d+$", "", query)), query


@pytest.mark.parametrize(
    ("chip", "devices", "lnc"),
    [
        (TRAINIUM1, 16, 1),
        (TRAINIUM2, 1, 1),
        (TRAINIUM2, 16, 2),
        (INFERENTIA2, 1, 1),
        pytest.param(TRAINIUM1, 1, 1, marks=pytest.mark.slow),
        pytest.param(TRAINIUM2, 1, 2, marks=pytest.mark.slow),
        pytest.param(TRAINIUM2, 16, 1, marks=pytest.mark.slow),
        pytest.param(INFERENTIA2, 16, 1, marks=pytest.mark.slow),
    ],
)
def test_metrics_are_clean_for_promtool(tmp_path, chip, devices, lnc):
    tree = SysfsTree(tmp_path / "tree", chip, devices, lnc=lnc)
    publish(tree, 1)
    with running_exporter("--sysfs-root", str(tree.root)) as port:
        text = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).read()
    checked = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True)
    complaints = (checked.stdout + checked.stderr).decode().splitlines()
    assert [line for line in complaints if not line.startswith(AWS_NAME_THAT_PROMTOOL_DISLIKES)] == []


@pytest.mark.parametrize("command", [["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"]])
def test_alert_rules_hold_their_own_tests(command):
    checked = subprocess.run(
        [tool("promtool"), *command], cwd=DEPLOY / "prometheus", capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_has_a_test():
    alert = re.compile(r"- alert: (\w+)")
    tested = re.compile(r"alertname: (\w+)")
    rules = (DEPLOY / "prometheus" / "rules.yml").read_text()
    tests = (DEPLOY / "prometheus" / "rules_test.yml").read_text()
    assert set(alert.findall(rules)) == set(tested.findall(tests))


def test_the_scrape_configuration_is_valid(tmp_path):
    for name in ("prometheus.yml", "rules.yml"):
        (tmp_path / name).write_text((DEPLOY / "prometheus" / name).read_text())
    (tmp_path / "token").write_text("secret")
    checked = subprocess.run(
        [tool("promtool"), "check", "config", str(tmp_path / "prometheus.yml")],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_scrape_without_the_token_is_refused(tmp_path):
    tree = SysfsTree(tmp_path / "tree")
    (tmp_path / "token").write_text("secret\n")
    options = ("--sysfs-root", str(tree.root), "--token-file", str(tmp_path / "token"))
    with running_exporter(*options) as port:
        address = f"http://127.0.0.1:{port}/metrics"
        with pytest.raises(HTTPError, match="401"):
            urlopen(address, timeout=PATIENCE_S)
        allowed = Request(address, headers={"Authorization": "Bearer secret"})
        assert b"instance_info" in urlopen(allowed, timeout=PATIENCE_S).read()


def test_a_request_in_another_hosts_name_is_refused(tmp_path):
    tree = SysfsTree(tmp_path / "tree")
    with running_exporter("--sysfs-root", str(tree.root)) as port:
        foreign = Request(f"http://127.0.0.1:{port}/metrics", headers={"Host": "evil.example"})
        with pytest.raises(HTTPError, match="403"):
            urlopen(foreign, timeout=PATIENCE_S)


@pytest.mark.parametrize("command", ["prometheus", "dashboard"])
def test_listening_to_others_without_a_token_is_refused(command):
    refused = subprocess.run(
        ["neuron-monitor", command, "--address", "0.0.0.0", "--port", str(free_port())],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 1
    assert "--token-file" in refused.stderr


@pytest.mark.slow
def test_prometheus_scrapes_a_training_run(tmp_path):
    environment = {**os.environ, "NEURON_SYSFS_ROOT": str(tmp_path / "tree"), "OMP_NUM_THREADS": "1"}
    script = [sys.executable, str(PROJECT / "examples" / "train_transformer.py"), "--steps", "100000"]
    training = subprocess.Popen(
        ["neuron-profile", "capture", "-o", str(tmp_path / "run.nprof"), "--", *script],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with (
            running_exporter(NEURON_SYSFS_ROOT=str(tmp_path / "tree")) as port,
            running_prometheus(tmp_path, [f"127.0.0.1:{port}"]) as server,
        ):
            server.wait_for('execution_status_total{status_type="completed"} > 100')
            for query in AWS_PANEL_QUERIES:
                assert server.wait_for(query), query
            assert server.wait_for('neuroncore_engine_utilization_ratio{engine="tensor"} > 0')
    finally:
        training.terminate()  # which is passed on to the command; killed, it would leave that running
        training.wait()
