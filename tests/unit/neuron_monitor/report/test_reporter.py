import json
from pathlib import Path

import orjson
import pytest
from jsonschema import Draft202012Validator

from neuron_monitor.api.host import Host
from neuron_monitor.api.instance import Instance
from neuron_monitor.api.kubernetes import PodWatch
from neuron_monitor.api.owners import Owner, Owners
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.report.config import default_configuration, parse_configuration
from neuron_monitor.report.reporter import Reporter
from tests.fixtures.monitor_structure import observed, structure
from tests.fixtures.neuron_sysfs import INFERENTIA, INFERENTIA2, TRAINIUM2, SysfsTree, held, process_core

SCHEMA = Path(__file__).parents[4] / "docs" / "neuron-monitor-report.schema.json"
AWS_ONLY = default_configuration(1.0, with_ours=False)


def run_a_second(tree, pid, cores, **told):
    """Publish a second in which each core was busy for a half."""
    content = {
        str(core): process_core(
            tree,
            core,
            status={"success": 14},
            inference_count=14,
            flop_count=3 * 10**12,
            busy_ns=500_000_000,
            engine_busy_ns={"tensor": 250_000_000},
            traffic={"hbm_read_bytes": 10**9},
            throttled_ns=100_000_000,
            device_memory=held(tensors=1 << 20, model_code=2 << 20, dma_rings=4096, nonshared_scratchpad=512),
            latency={"device": {"3000000": 10, "4000000": 4}, "total": {"5000000": 14}},
        )
        for core in cores
    }
    model = {"name": "step", "uuid": "ab" * 16, "model_id": 10001, "core": cores[0], "is_running": True}
    told = {
        "cores": content,
        "elapsed_ns": 1_000_000_000,
        "published_at": 1_700_000_002.0,
        "models": [model],
        "host_memory": held(tensors=1000, dma_rings=24, application_memory=5),
        **told,
    }
    tree.publish(pid, cores, **told)


@pytest.fixture
def report_of(make_sampler, clock):
    """Makes a reporter, lets something happen, and gives the report of the second in which it did."""

    def make(tree, happen=lambda: None, configuration=AWS_ONLY, **options):
        sampler = make_sampler(tree)
        reporter = Reporter(configuration, sampler.sample(), **options)
        happen()
        clock.pass_seconds(1)
        return orjson.loads(orjson.dumps(reporter.report(sampler.sample())))

    return make


def test_an_idle_inf1_host_reports_what_a_real_one_does(tmp_path, report_of):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA, simulated=False)
    assert structure(report_of(tree, spelling="observed")) == observed("inf1 idle")


def test_a_running_inf1_host_reports_what_a_real_one_does(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA)
    tree.publish(pid, range(4))
    report = report_of(tree, lambda: run_a_second(tree, pid, range(4)), spelling="observed")
    assert structure(report) == observed("inf1 running")


def test_a_trainium2_host_can_report_as_the_guide_documents(tmp_path, report_of, pid, pods):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2, lnc=2)
    tree.publish(pid, range(4))
    report = report_of(tree, lambda: run_a_second(tree, pid, range(4)), spelling="documented", pods=pods(pid))
    assert structure(report) == observed("trn2 documented")


def test_an_inf2_host_reports_what_a_real_one_does(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2)
    tree.publish(pid, range(2))
    found = structure(report_of(tree, lambda: run_a_second(tree, pid, range(2))))
    assert observed("inf2 running").items() <= found.items()


def test_by_default_both_spellings_stand_side_by_side(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2)
    tree.publish(pid, [0])
    report = report_of(tree, lambda: run_a_second(tree, pid, [0]))
    process = report["neuron_runtime_data"][0]["report"]
    core = process["neuroncore_counters"]["neuroncores_in_use"]["0"]
    assert core["flops"] == core["effective_flops"] == 3 * 10**12
    used = process["memory_used"]["neuron_runtime_used_bytes"]
    assert used["device"] == used["neuron_device"] == (3 << 20) + 4096 + 512


@pytest.mark.parametrize("spelling", ["observed", "documented", "both"])
@pytest.mark.parametrize("chip", [INFERENTIA, INFERENTIA2, TRAINIUM2])
def test_every_report_is_as_the_published_schema_says(tmp_path, report_of, pid, pods, chip, spelling):
    tree = SysfsTree(tmp_path / "tree", chip)
    tree.publish(pid, [0, 1])
    report = report_of(
        tree,
        lambda: run_a_second(tree, pid, [0, 1]),
        default_configuration(1.0),
        spelling=spelling,
        pods=pods(pid),
    )
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(report)


def test_the_numbers_are_those_of_the_period(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0])
    report = report_of(tree, lambda: run_a_second(tree, pid, [0]), default_configuration(1.0))
    process = report["neuron_runtime_data"][0]["report"]
    assert process["neuroncore_counters"]["neuroncores_in_use"] == {
        "0": {"neuroncore_utilization": 50.0, "flops": 3 * 10**12, "effective_flops": 3 * 10**12}
    }
    assert process["neuroncore_counters"]["period"] == 1.0
    assert process["execution_stats"]["execution_summary"]["completed"] == 14
    latency = process["execution_stats"]["latency_stats"]
    assert (latency["device_latency"]["p50"], latency["device_latency"]["p99"]) == (0.003, 0.004)
    assert latency["total_latency"]["p0"] == 0.005
    activity = process["neuroncore_activity"]["neuroncores"]["0"]
    assert activity["engine_utilization"]["tensor"] == 25.0
    assert activity["hbm_read_bytes_per_second"] == 10**9
    assert activity["throttled"] == pytest.approx(10.0)


def test_parts_of_memory_sum_to_the_whole(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0, 1])
    report = report_of(tree, lambda: run_a_second(tree, pid, [0, 1]))
    used = report["neuron_runtime_data"][0]["report"]["memory_used"]["neuron_runtime_used_bytes"]
    breakdown = used["usage_breakdown"]
    assert sum(sum(core.values()) for core in breakdown["neuroncore_memory_usage"].values()) == used["device"]
    assert sum(breakdown["host"].values()) == used["host"] == 1029


def test_a_process_that_began_within_the_period_counts_from_its_start(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    report = report_of(tree, lambda: run_a_second(tree, pid, [0]))
    stats = report["neuron_runtime_data"][0]["report"]["execution_stats"]
    assert stats["execution_summary"]["completed"] == 14


def test_between_two_publications_rates_hold_and_counts_are_zero(tmp_path, make_sampler, clock, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0])
    sampler = make_sampler(tree)
    reporter = Reporter(AWS_ONLY, sampler.sample())
    run_a_second(tree, pid, [0])
    reports = []
    for _ in range(4):
        clock.pass_seconds(0.5)
        reports.append(orjson.loads(orjson.dumps(reporter.report(sampler.sample()))))
    groups = [report["neuron_runtime_data"][0]["report"] for report in reports]
    cores = [group["neuroncore_counters"]["neuroncores_in_use"]["0"] for group in groups]
    assert [core["neuroncore_utilization"] for core in cores] == [50.0] * 4
    counts = [group["execution_stats"]["execution_summary"]["completed"] for group in groups]
    assert counts == [14, 0, 0, 0]
    assert [group["memory_used"]["period"] for group in groups] == [0.5] * 4


def test_groups_are_reported_when_they_are_due_over_their_own_period(tmp_path, make_sampler, clock, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0])
    configuration = parse_configuration(
        {
            "period": "1s",
            "neuron_runtimes": [{"metrics": [{"type": "execution_stats", "period": "2s"}]}],
            "system_metrics": [{"type": "memory_info"}],
        }
    )
    sampler = make_sampler(tree)
    reporter = Reporter(configuration, sampler.sample())
    run_a_second(tree, pid, [0])
    clock.pass_seconds(1)
    first = orjson.loads(orjson.dumps(reporter.report(sampler.sample(), configuration.system)))
    clock.pass_seconds(1)
    second = orjson.loads(orjson.dumps(reporter.report(sampler.sample())))
    assert first["neuron_runtime_data"] == []
    assert list(first["system_data"]) == ["memory_info"]
    stats = second["neuron_runtime_data"][0]["report"]["execution_stats"]
    assert (stats["period"], stats["execution_summary"]["completed"]) == (2.0, 14)
    assert second["system_data"]["memory_info"]["period"] == 1.0


def test_a_filter_chooses_processes_by_their_tag(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0], tag="train-1")
    tree.publish(1, [1], tag="serve")
    told = {"neuron_runtimes": [{"tag_filter": "train.*", "metrics": [{"type": "memory_used"}]}]}
    report = report_of(tree, configuration=parse_configuration(told))
    shown = {entry["neuron_runtime_tag"]: list(entry["report"]) for entry in report["neuron_runtime_data"]}
    assert shown == {"train-1": ["memory_used"], "serve": []} or shown == {"train-1": ["memory_used"]}


def test_a_host_without_devices_says_so(tmp_path, report_of):
    tree = SysfsTree(tmp_path / "tree", devices=0, simulated=False)
    report = report_of(tree, configuration=default_configuration(1.0))
    assert report["system_data"]["neuron_hw_counters"]["neuron_devices"] is None
    assert "no Neuron device" in report["neuron_hardware_info"]["error"]
    assert report["neuron_runtime_data"] == []


def test_what_could_not_be_read_is_named(tmp_path, report_of):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2, simulated=False)
    tree.write("neuron0/neuron_core0/stats/status/success/total", "?")
    status = report_of(tree, configuration=default_configuration(1.0))["system_data"]["neuron_device_status"]
    assert "success/total: not a number" in status["error"]
    assert status["unreadable"][0]["path"].endswith("neuron_core0/stats/status/success/total")


def test_cores_that_are_held_and_idle_are_told(tmp_path, make_sampler, clock, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [3])
    sampler = make_sampler(tree)
    reporter = Reporter(default_configuration(1.0), sampler.sample())
    clock.pass_seconds(90)
    report = orjson.loads(orjson.dumps(reporter.report(sampler.sample())))
    cores = report["system_data"]["neuron_device_status"]["devices"][0]["physical_neuroncores"]
    assert cores["3"] == {"utilization": 0.0, "pids": [pid], "allocated_idle_seconds": 90}
    assert cores["4"]["pids"] == []


def test_pods_are_named_where_they_are_asked_for(tmp_path, report_of, pid, pods):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0])
    info = report_of(tree, pods=pods(pid))["neuron_k8s_info"]
    pod = {"pod_name": "train-0", "namespace": "ml", "container_name": ["main"]}
    assert (info["neuroncores_k8s_info"], info["neurondevices_k8s_info"]) == ({"0": pod}, {"0": pod})


@pytest.fixture
def pods(tmp_path, clock):
    """Makes what finds pods, of a node on which a process runs in a container."""

    def make(pid):
        container = "ab" * 32
        logs, processes = tmp_path / "logs", tmp_path / "proc"
        logs.mkdir()
        (logs / f"train-0_ml_main-{container}.log").touch()
        (processes / str(pid)).mkdir(parents=True)
        (processes / str(pid) / "cgroup").write_text(f"0::/kubepods/cri-containerd-{container}.scope\n")
        return PodWatch(str(logs), str(processes), clock)

    return make


def test_a_wall_clock_that_is_set_back_changes_nothing(tmp_path, make_sampler, clock, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0], published_at=1_700_000_000.0)
    sampler = make_sampler(tree)
    reporter = Reporter(AWS_ONLY, sampler.sample())
    run_a_second(tree, pid, [0], published_at=1_600_000_000.0)
    clock.pass_seconds(1)
    report = orjson.loads(orjson.dumps(reporter.report(sampler.sample())))["neuron_runtime_data"][0]["report"]
    assert report["execution_stats"]["execution_summary"]["completed"] == 14
    assert report["neuroncore_counters"]["neuroncores_in_use"]["0"]["neuroncore_utilization"] == 50.0
    assert report["neuroncore_counters"]["period"] == 1.0


def test_a_process_that_was_killed_while_it_published_is_gone(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    dead = 2**22 - 3
    run_a_second(tree, dead, [0], start_ticks=5)
    half = (tree.root / f"processes/{dead}.json").read_bytes()[:200]
    (tree.root / f"processes/{dead}.json.tmp").write_bytes(half)
    report = report_of(tree, lambda: run_a_second(tree, pid, [1]), default_configuration(1.0))
    assert [entry["pid"] for entry in report["neuron_runtime_data"]] == [pid]
    assert report["system_data"]["neuron_device_status"]["error"] == ""


def test_a_process_of_the_same_pid_that_began_anew_counts_from_its_own_start(
    tmp_path, make_sampler, clock, pid
):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    run_a_second(tree, pid, [0], elapsed_ns=9_000_000_000)
    sampler = make_sampler(tree)
    reporter = Reporter(AWS_ONLY, sampler.sample())
    run_a_second(tree, pid, [0], published_at=1_700_000_009.0)
    clock.pass_seconds(1)
    report = orjson.loads(orjson.dumps(reporter.report(sampler.sample())))["neuron_runtime_data"][0]["report"]
    assert report["execution_stats"]["execution_summary"]["completed"] == 14


def test_a_real_process_counts_from_when_the_period_began(tmp_path, clock, pid):
    class OneOwner(Owners):
        def find(self, now_ns):
            return (Owner(pid, "serve", "python", "2.34", frozenset([0]), None, 1),)

    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, simulated=False)
    tree.count(0, success=100, inference_count=100, nc_time_in_use=5_000_000)
    device_tree = DeviceTree(str(tree.root), clock=clock, owners=OneOwner())
    sampler = Sampler(device_tree, Host(), Instance(str(tmp_path)), clock)
    reporter = Reporter(AWS_ONLY, sampler.sample())
    tree.count(0, success=107, inference_count=107, nc_time_in_use=5_250_000)
    reports = []
    for _ in range(3):
        clock.pass_seconds(1)
        reports.append(orjson.loads(orjson.dumps(reporter.report(sampler.sample()))))
    sampler.close()
    groups = [report["neuron_runtime_data"][0]["report"] for report in reports]
    cores = [group["neuroncore_counters"]["neuroncores_in_use"]["0"] for group in groups]
    assert [core["neuroncore_utilization"] for core in cores] == [25.0, 0.0, 0.0]
    completed = [group["execution_stats"]["execution_summary"]["completed"] for group in groups]
    assert completed == [7, 0, 0]
    assert groups[0]["execution_stats"]["latency_stats"]["total_latency"] is None


def test_a_process_whose_times_are_not_kept_has_no_utilization_rather_than_0(tmp_path, report_of, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.publish(pid, [0], timing=False)
    report = report_of(tree, lambda: run_a_second(tree, pid, [0], timing=False), default_configuration(1.0))
    groups = report["neuron_runtime_data"][0]["report"]
    assert groups["neuroncore_counters"]["neuroncores_in_use"] == {}
    assert "neuron-profile capture" in groups["neuroncore_counters"]["error"]
    assert groups["neuroncore_activity"]["is_timed"] is False
    assert groups["execution_stats"]["execution_summary"]["completed"] == 14
    assert groups["memory_used"]["error"] == ""
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(report)
