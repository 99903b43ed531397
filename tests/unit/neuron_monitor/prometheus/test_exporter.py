import gzip

import pytest
from prometheus_client.parser import text_string_to_metric_families

from neuron_monitor.prometheus.exporter import Exporter
from neuron_tools.listening import is_loopback
from tests.fixtures.monitor_structure import observed, series
from tests.fixtures.neuron_sysfs import INFERENTIA, TRAINIUM2, SysfsTree, held, process_core


@pytest.fixture
def publish(pid):
    """Publishes a second of work on some cores."""

    def make(tree, second, cores=(0, 1), **told):
        content = {
            str(core): process_core(
                tree,
                core,
                status={"success": 5 * second, "hw_error": second},
                busy_ns=second * 250_000_000,
                flop_count=second * 10**12,
                inference_count=6 * second,
                traffic={"dma_bytes": 100 * second},
                device_memory=held(tensors=1000),
                latency={"total": {"2000000": second}, "device": {"1000000": second}},
            )
            for core in cores
        }
        told = {"tag": "train", "cores": content, "elapsed_ns": second * 10**9, **told}
        tree.publish(pid, cores, published_at=float(second), **told)

    return make


@pytest.fixture
def export(make_sampler, clock, publish):
    """The text after a second of work."""

    def make(tree, **told):
        publish(tree, 1, **told)
        exporter = Exporter(make_sampler(tree), 1.0, clock=clock, wall_clock=lambda: 1_700_000_000.0)
        publish(tree, 2, **told)
        clock.pass_seconds(1)
        exporter.update()
        return exporter

    return make


def samples(exporter):
    families = text_string_to_metric_families(exporter.text().decode())
    return [sample for family in families for sample in family.samples]


def value(exporter, name, **labels):
    (found,) = [
        sample.value
        for sample in samples(exporter)
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found


@pytest.mark.parametrize("source", ["prometheus inf1", "prometheus trn1n"])
def test_awss_series_are_there_under_their_names_and_labels(tmp_path, export, source):
    ours = series(export(SysfsTree(tmp_path / "tree", INFERENTIA)).text().decode())
    missing = {name: labels for name, labels in observed(source).items() if ours.get(name) != labels}
    assert missing == {}


def test_no_series_stands_twice(tmp_path, export, publish, pid):
    tree = SysfsTree(tmp_path / "tree")
    tree.publish(1, [0], tag="train")
    found = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples(export(tree))]
    assert len(found) == len(set(found))


def test_series_of_times_that_are_not_kept_are_absent(tmp_path, make_sampler, clock, publish):
    tree = SysfsTree(tmp_path / "tree")
    publish(tree, 1, timing=False)
    exporter = Exporter(make_sampler(tree), 1.0, clock=clock)
    publish(tree, 2, timing=False)
    clock.pass_seconds(1)
    exporter.update()
    names = {sample.name for sample in samples(exporter)}
    assert not names & {"neuroncore_utilization_ratio", "neuroncore_flops_per_second"}
    assert {"neuron_process_neuroncore", "execution_status_total"} <= names


def test_values_are_those_of_the_last_second(tmp_path, export):
    exporter = export(SysfsTree(tmp_path / "tree"))
    core = {"neuroncore": "1", "runtime_tag": "train"}
    assert value(exporter, "neuroncore_utilization_ratio", **core) == pytest.approx(0.25)
    assert value(exporter, "neuroncore_flops_per_second", **core) == pytest.approx(10**12)
    assert value(exporter, "neuroncore_traffic_bytes_total", kind="dma_bytes", **core) == 200
    assert value(exporter, "execution_status_total", status_type="completed") == 20
    assert value(exporter, "execution_errors_total", error_type="hardware") == 4
    assert value(exporter, "execution_latency_seconds", percentile="p50") == 0.002
    assert value(exporter, "neuron_execution_device_latency_seconds", percentile="p99") == 0.001
    assert value(exporter, "neuroncore_memory_usage_tensors", **core) == 1000
    assert value(exporter, "neuron_device_memory_used_bytes", neuron_device_index="0") == 2000


def test_allocated_cores_and_how_long_they_are_idle(tmp_path, export, clock):
    exporter = export(SysfsTree(tmp_path / "tree"))
    clock.pass_seconds(30)
    exporter.update()
    assert value(exporter, "neuroncore_allocated", physical_neuroncore="1") == 1
    assert value(exporter, "neuroncore_allocated", physical_neuroncore="2") == 0
    assert value(exporter, "neuroncore_allocated_idle_seconds", physical_neuroncore="1") == 30


def test_two_processes_with_one_tag_add_up(tmp_path, export, publish):
    tree = SysfsTree(tmp_path / "tree")
    core = process_core(tree, 2, status={"success": 100})
    tree.publish(1, [2], tag="train", cores={"2": core})
    assert value(export(tree), "execution_status_total", status_type="completed") == 120


def test_a_label_may_hold_any_text(tmp_path, export):
    exporter = export(SysfsTree(tmp_path / "tree"), tag='a"b\\c\nd')
    tags = {sample.labels["runtime_tag"] for sample in samples(exporter) if "runtime_tag" in sample.labels}
    assert tags == {'a"b\\c\nd'}


def test_a_text_is_made_once_however_many_ask(tmp_path, export):
    exporter = export(SysfsTree(tmp_path / "tree"))
    assert exporter.text() is exporter.text()
    assert exporter.text(compressed=True) is exporter.text(compressed=True)
    assert gzip.decompress(exporter.text(compressed=True)) == exporter.text()


def test_nodes_that_cannot_be_read_are_counted(tmp_path, export):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2)
    tree.write("neuron0/stats/hardware/mem_ecc_corrected", "?")
    assert value(export(tree), "neuron_monitor_unreadable_nodes") == 1


@pytest.mark.parametrize(
    ("name", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("::", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_which_addresses_are_this_machine_only(name, is_local):
    assert is_loopback(name) == is_local
