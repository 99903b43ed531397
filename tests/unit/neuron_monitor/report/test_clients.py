"""Public readers of neuron-monitor's lines, each as its documentation or source says that it parses them.

Every reader here gives what its client would show; all of them get the default report. Sources:
aws-neuron-sdk, "neuron-monitor user guide" (the Prometheus and CloudWatch scripts); wandb/wandb,
core/internal/monitor/trainium.go; observIQ/bindplane-otel-contrib, receiver/awsneuronreceiver;
plasma-umass/scalene, scalene_neuron.py; ray-project/ray, accelerators/neuron.py. The last two run as they are
in tests/integration/monitor/test_clients.py, where they are installed.
"""

import subprocess

import orjson
import pytest

from neuron_monitor.api.instance import Instance
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.listing.devices import as_json, make_listing
from neuron_monitor.report.config import default_configuration, parse_configuration
from neuron_monitor.report.reporter import Reporter
from tests.fixtures.neuron_sysfs import INFERENTIA2, TRAINIUM1, TRAINIUM2, SysfsTree, held, process_core

HOSTS = {
    "trn1": (TRAINIUM1, 1, 1),
    "trn2, two cores as one": (TRAINIUM2, 1, 2),
    "trn2, each core by itself": (TRAINIUM2, 1, 1),
    "trn2 of two devices, each core by itself": (TRAINIUM2, 2, 1),
    "inf2": (INFERENTIA2, 1, 1),
    "inf2 of 12 devices": (INFERENTIA2, 12, 1),
    "inf2 of 16 devices": (INFERENTIA2, 16, 1),
    "trn1 of 16 devices": (TRAINIUM1, 16, 1),
    "trn2 of 16 devices, two cores as one": (TRAINIUM2, 16, 2),
    "trn2 of 16 devices, each core by itself": (TRAINIUM2, 16, 1),
}
FLOPS, EXECUTIONS, TENSORS, CODE, SCRATCHPAD = 3 * 10**12, 14, 1 << 20, 2 << 20, 512
EVERY_INTEGER = 1 << 63
MOST_BYTES_OF_A_SCANNER = 1 << 16  # bufio.MaxScanTokenSize of Go
WANDB = parse_configuration(
    {
        "period": "1s",
        "neuron_runtimes": [
            {
                "tag_filter": ".*",
                "metrics": [
                    {"type": name}
                    for name in ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage")
                ],
            }
        ],
        "system_metrics": [{"type": name} for name in ("vcpu_usage", "memory_info", "neuron_hw_counters")],
    }
)


SCALENE = parse_configuration(
    {
        "period": "1s",
        "system_metrics": [{"type": "vcpu_usage"}, {"type": "memory_info"}],
        "neuron_runtimes": [
            {
                "tag_filter": ".*",
                "metrics": [
                    {"type": name}
                    for name in ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage")
                ],
            }
        ],
    }
)
LARGE = {name for name in HOSTS if "16 devices" in name}


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in HOSTS]
)
def host(request, tmp_path):
    chip, devices, size = HOSTS[request.param]
    return SysfsTree(tmp_path / "tree", chip, devices, lnc=size)


@pytest.fixture
def line_of(make_sampler, clock, pid):
    """The line of a second in which a process's two physical cores were busy for a half, or none was."""

    def make(tree, configuration=None, *, busy=True):
        tree.publish(pid, [0, 1])
        sampler = make_sampler(tree)
        reporter = Reporter(configuration or default_configuration(1.0), sampler.sample())
        core = {
            "status": {"success": EXECUTIONS},
            "flop_count": FLOPS,
            "busy_ns": 500_000_000,
            "device_memory": held(tensors=TENSORS, model_code=CODE, nonshared_scratchpad=SCRATCHPAD),
            "latency": {"device": {"3000000": EXECUTIONS}, "total": {"5000000": EXECUTIONS}},
        }
        cores = {str(each): process_core(tree, each, **core) for each in (0, 1)} if busy else {}
        told = {"cores": cores} if busy else {}
        tree.publish(
            pid,
            [0, 1],
            **told,
            elapsed_ns=10**9,
            published_at=1_700_000_002.0,
            host_memory=held(tensors=1000, application_memory=24),
        )
        clock.pass_seconds(1)
        return orjson.dumps(reporter.report(sampler.sample()))

    return make


def aws_prometheus_script(line):
    """What the script of AWS's guide serves; a missing key ends it."""
    report, found = orjson.loads(line), {}
    for process in report["neuron_runtime_data"]:
        tag, groups = process["neuron_runtime_tag"], process["report"]
        for index, core in groups["neuroncore_counters"]["neuroncores_in_use"].items():
            found["utilization", index] = core["neuroncore_utilization"] / 100
        used = groups["memory_used"]["neuron_runtime_used_bytes"]
        found["memory", "host", tag], found["memory", "neuron_device", tag] = (
            used["host"],
            used["neuron_device"],
        )
        for index, categories in used["usage_breakdown"]["neuroncore_memory_usage"].items():
            for name, size in categories.items():
                found["memory", index, name] = size + 0
        for kind in ("execution_summary", "error_summary"):
            found.update({(kind, name): count + 0 for name, count in groups["execution_stats"][kind].items()})
        latency = groups["execution_stats"]["latency_stats"]["total_latency"] or {}
        found.update({("latency", name): float(value) for name, value in latency.items()})
        found["vcpu", tag] = sum(groups["neuron_runtime_vcpu_usage"]["vcpu_usage"].values())
    system = report["system_data"]
    found["vcpu"] = {name: share / 100 for name, share in system["vcpu_usage"]["average_usage"].items()}
    found["memory_total"] = (
        system["memory_info"]["memory_total_bytes"] + system["memory_info"]["swap_total_bytes"]
    )
    for device in system["neuron_hw_counters"]["neuron_devices"] or ():
        for name in (
            "mem_ecc_corrected",
            "mem_ecc_uncorrected",
            "sram_ecc_uncorrected",
            "sram_ecc_corrected",
        ):
            found[name, device["neuron_device_index"]] = device[name] + 0
    for section in ("instance_info", "neuron_hardware_info"):
        labels = {name: str(value) for name, value in report[section].items() if name != "error"}
        found[section] = labels
    return found


def wandb_core(line, pid):
    """What W&B logs of the process; a key that is missing or of another type is logged as 0 or not at all."""
    report = orjson.loads(line)
    (mine,) = [each["report"] for each in report["neuron_runtime_data"] if each["pid"] == pid]
    used = mine["memory_used"]["neuron_runtime_used_bytes"]
    cores = mine["neuroncore_counters"]["neuroncores_in_use"]
    return {
        "utilization": {int(index): core.get("neuroncore_utilization", 0.0) for index, core in cores.items()},
        "host": used.get("host", 0),
        "device": used.get("neuron_device", 0),
        "host parts": used["usage_breakdown"]["host"],
        "core parts": used["usage_breakdown"]["neuroncore_memory_usage"],
        "devices": report["neuron_hardware_info"].get("neuron_device_count", 0),
    }


def opentelemetry_receiver(line):
    """What observIQ's receiver emits: whole numbers must be whole and fit into 64 bits, absent ones are 0."""
    report = orjson.loads(line)

    def whole(value):
        assert value is None or (isinstance(value, int) and -EVERY_INTEGER <= value < EVERY_INTEGER)
        return value or 0

    found = []
    for process in report["neuron_runtime_data"]:
        groups = process["report"]
        used = groups["memory_used"]["neuron_runtime_used_bytes"]
        stats = groups["execution_stats"]
        found.append(
            {
                "completed": whole(stats["execution_summary"].get("completed")),
                "errors": sum(map(whole, stats["error_summary"].values())),
                "host": whole(used.get("host")),
                "device": whole(used.get("neuron_device")),
                "flops": {
                    index: float(core.get("effective_flops", 0))
                    for index, core in groups["neuroncore_counters"]["neuroncores_in_use"].items()
                },
                "tensors": sum(
                    whole(parts.get("tensors"))
                    for parts in used["usage_breakdown"]["neuroncore_memory_usage"].values()
                ),
            }
        )
    hardware = report["neuron_hardware_info"]
    names = ("neuron_device_count", "neuron_device_memory_size", "neuroncore_per_device_count")
    return found, [whole(hardware.get(name)) for name in names]


def test_awss_prometheus_script_serves_what_was_counted(host, line_of, pid):
    found = aws_prometheus_script(line_of(host))
    cores = 2 // host.lnc
    device_bytes = 2 * (TENSORS + CODE + SCRATCHPAD)
    assert [found["utilization", str(core)] for core in range(cores)] == [0.5] * cores
    assert found["memory", "neuron_device", str(pid)] == device_bytes
    assert sum(found["memory", str(core), "tensors"] for core in range(cores)) == 2 * TENSORS
    assert (found["execution_summary", "completed"], found["error_summary", "hardware"]) == (28, 0)
    assert found["latency", "p99"] == pytest.approx(0.005, rel=0.1)
    assert [found["mem_ecc_corrected", device] for device in range(host.devices)] == [0] * host.devices
    assert found["neuron_hardware_info"]["neuron_device_count"] == str(host.devices)
    assert found["neuron_hardware_info"]["neuroncore_per_device_count"] == str(host.chip.cores // host.lnc)


def test_awss_prometheus_script_serves_an_idle_host(host, line_of, pid):
    found = aws_prometheus_script(line_of(host, busy=False))
    assert found["utilization", "0"] == 0
    assert found["memory", "neuron_device", str(pid)] == 0
    assert found["memory", "host", str(pid)] == 1024


def test_weights_and_biases_logs_what_was_counted(host, line_of, pid):
    found = wandb_core(line_of(host, WANDB), pid)
    cores = range(2 // host.lnc)
    assert found["utilization"] == dict.fromkeys(cores, 50.0)
    assert (found["host"], found["device"]) == (1024, 2 * (TENSORS + CODE + SCRATCHPAD))
    assert set(found["host parts"]) == {"application_memory", "constants", "dma_buffers", "tensors"}
    assert found["core parts"]["0"] == {
        "constants": 0,
        "model_code": host.lnc * CODE,
        "model_shared_scratchpad": host.lnc * SCRATCHPAD,
        "runtime_memory": 0,
        "tensors": host.lnc * TENSORS,
    }
    assert found["devices"] == host.devices


def test_the_opentelemetry_receiver_emits_what_was_counted(host, line_of):
    (process,), hardware = opentelemetry_receiver(line_of(host))
    assert process == {
        "completed": 2 * EXECUTIONS,
        "errors": 0,
        "host": 1024,
        "device": 2 * (TENSORS + CODE + SCRATCHPAD),
        "flops": {str(core): host.lnc * FLOPS for core in range(2 // host.lnc)},
        "tensors": 2 * TENSORS,
    }
    assert hardware == [host.devices, host.chip.memory_bytes, host.chip.cores // host.lnc]


def test_weights_and_biases_logs_an_idle_host(host, line_of, pid):
    found = wandb_core(line_of(host, WANDB, busy=False), pid)
    assert found["utilization"] == dict.fromkeys(range(2 // host.lnc), 0.0)
    assert (found["host"], found["device"]) == (1024, 0)


def test_the_opentelemetry_receiver_emits_an_idle_host(host, line_of):
    (process,), _ = opentelemetry_receiver(line_of(host, busy=False))
    assert (process["completed"], process["device"], set(process["flops"].values())) == (0, 0, {0.0})


def scalene(line):
    """What Scalene shows: mean share of the cores that work, MiB on devices, percent of the processors."""
    report = orjson.loads(line)
    groups = [process["report"] for process in report["neuron_runtime_data"]]
    shares = [
        core.get("neuroncore_utilization", 0)
        for group in groups
        for core in group["neuroncore_counters"].get("neuroncores_in_use", {}).values()
    ]
    assert max(shares, default=0) <= 100
    held_bytes = sum(
        sum(parts.values())
        for group in groups
        for parts in group["memory_used"]["neuron_runtime_used_bytes"]["usage_breakdown"][
            "neuroncore_memory_usage"
        ].values()
    )
    idle = [core["idle"] for core in report["system_data"]["vcpu_usage"]["usage_data"].values()]
    working = max(1, sum(share > 0 for share in shares))
    return sum(shares) / working / 100, held_bytes / (1 << 20), 100 - sum(idle) / len(idle)


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_scalene_shows_what_was_counted(host, line_of, busy):
    share, device_mib, processors = scalene(line_of(host, SCALENE, busy=busy))
    held_bytes = 2 * (TENSORS + CODE + SCRATCHPAD) if busy else 0
    assert (share, device_mib) == (0.5 if busy else 0.0, held_bytes / (1 << 20))
    assert 0 <= processors <= 100


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_ray_counts_the_cores_of_the_host(host, pid, busy):
    if busy:
        host.publish(pid, [0, 1])
    reading = DeviceTree(str(host.root), with_counts=False).read()
    listing = orjson.loads(
        orjson.dumps(as_json(make_listing(reading, Instance().facts(reading.instance_type), with_all=False)))
    )
    assert sum(device.get("nc_count", 0) for device in listing) == host.devices * host.chip.cores // host.lnc
    assert [process["pid"] for device in listing for process in device["neuron_processes"]] == [pid] * busy


@pytest.fixture
def processes():
    started = []

    def start(count):
        started.extend(subprocess.Popen(["sleep", "600"]) for _ in range(count))
        return [process.pid for process in started]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 16, 64])
@pytest.mark.parametrize("size", [1, 2])
def test_lines_of_a_full_host_fit_what_weights_and_biases_reads(
    tmp_path, make_sampler, clock, processes, count, size
):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2, 16, lnc=size)
    share = 16 * TRAINIUM2.cores // count
    models = [
        {"name": f"graph_{number}", "uuid": f"{number:032x}", "model_id": number} for number in range(40)
    ]
    for number, each in enumerate(processes(count)):
        owned = range(number * share, (number + 1) * share)
        busy = {"status": {"success": 10**9}, "flop_count": 10**15, "device_memory": held(tensors=1 << 34)}
        cores = {str(core): process_core(tree, core, **busy) for core in owned}
        tree.publish(each, owned, cores=cores, models=models, elapsed_ns=10**9)
    sampler = make_sampler(tree)
    reporter = Reporter(WANDB, sampler.sample())
    clock.pass_seconds(1)
    assert len(orjson.dumps(reporter.report(sampler.sample()))) < MOST_BYTES_OF_A_SCANNER
