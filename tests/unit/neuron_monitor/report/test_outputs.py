"""Reports for CloudWatch, OpenTelemetry and StatsD: what is counted arrives with unit, kind and labels."""

import io
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from neuron_monitor.report.cloudwatch import EmbeddedMetrics
from neuron_monitor.report.config import default_configuration
from neuron_monitor.report.measurements import Measurement, measurements
from neuron_monitor.report.otlp import Collector, request
from neuron_monitor.report.reporter import Reporter, as_values
from neuron_monitor.report.statsd import MOST_BYTES_OF_A_DATAGRAM, StatsD, datagrams, line
from neuron_tools.errors import UsageError
from tests.fixtures.neuron_sysfs import TRAINIUM1, SysfsTree, held, process_core

# StatsD's line with DogStatsD's tags, from its documentation.
LINE = re.compile(
    r"[A-Za-z0-9_.]+:-?[0-9.e+-]+\|[cg](\|#[A-Za-z0-9_.]+:[^,|#\s]+(,[A-Za-z0-9_.]+:[^,|#\s]+)*)?"
)


@pytest.fixture
def report(tmp_path, make_sampler, clock, pid):
    """A second in which both cores of a process were busy for a half, with 14 executions each."""
    tree = SysfsTree(tmp_path / "tree", TRAINIUM1)
    tree.publish(pid, [0, 1], tag="train")
    sampler = make_sampler(tree)
    reporter = Reporter(default_configuration(1.0), sampler.sample())
    core = {
        "status": {"success": 14, "hw_error": 1},
        "busy_ns": 500_000_000,
        "device_memory": held(tensors=1 << 20),
        "latency": {"device": {"3000000": 14}, "total": {"5000000": 14}},
    }
    cores = {str(each): process_core(tree, each, **core) for each in (0, 1)}
    tree.publish(pid, [0, 1], tag="train", cores=cores, elapsed_ns=10**9, published_at=1_700_000_002.0)
    clock.pass_seconds(1)
    return as_values(reporter.report(sampler.sample()))


def metrics_of(document):
    """What CloudWatch makes of a document: (value, unit) by metric, and the dimensions."""
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    (names,) = directive["Dimensions"]
    assert set(document["_aws"]) == {"Timestamp", "CloudWatchMetrics"}
    assert set(directive) == {"Namespace", "Dimensions", "Metrics"}
    assert len(names) <= 30
    assert 0 < len(directive["Metrics"]) <= 100
    dimensions = {name: document[name] for name in names}
    assert all(isinstance(value, str) and value for value in dimensions.values())
    values = {each["Name"]: (document[each["Name"]], each["Unit"]) for each in directive["Metrics"]}
    assert all(isinstance(value, (int, float)) for value, _ in values.values())
    return values, dimensions


def test_cloudwatch_gets_each_set_of_dimensions_in_a_line(report):
    out = io.BytesIO()
    EmbeddedMetrics(out, clock=lambda: 1_700_000_000.5).write(report)
    told = [json.loads(text) for text in out.getvalue().splitlines()]
    found = [metrics_of(document) for document in told]
    assert {document["_aws"]["Timestamp"] for document in told} == {1_700_000_000_500}
    (process,) = [
        values for values, labels in found if labels.keys() & {"runtime_tag", "neuroncore"} == {"runtime_tag"}
    ]
    assert process["executions_completed"] == (28, "Count")
    assert process["execution_errors"] == (2, "Count")
    assert process["runtime_device_memory"] == (2 << 20, "Bytes")
    assert process["execution_latency_p99"][0] == pytest.approx(0.005, rel=0.1)
    cores = {labels["neuroncore"]: values for values, labels in found if "neuroncore" in labels}
    assert {core: values["neuroncore_utilization"] for core, values in cores.items()} == {
        "0": (50.0, "Percent"),
        "1": (50.0, "Percent"),
    }


def test_a_statsd_server_gets_gauges_and_counters_with_tags(report, monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        monkeypatch.setenv("STATSD_ADDRESS", f"127.0.0.1:{server.getsockname()[1]}")
        StatsD().write(report)
        lines = server.recv(1 << 16).decode().splitlines()
    assert all(LINE.fullmatch(text) for text in lines)
    (completed,) = [text for text in lines if text.startswith("neuron.executions_completed:")]
    assert completed.startswith("neuron.executions_completed:28|c|#")
    assert "runtime_tag:train" in completed
    cores = [text for text in lines if text.startswith("neuron.neuroncore_utilization:50|g|#")]
    assert len(cores) == 2


def test_a_tag_cannot_end_its_line():
    text = line(Measurement("x", 1.5, "count", {"runtime_tag": "a|b,c#d e:f\nneuron.y:1|c"}))
    assert LINE.fullmatch(text.decode())


def test_datagrams_fit_into_a_packet_and_lose_nothing():
    lines = [b"neuron.metric_%d:1|g" % number for number in range(500)]
    found = list(datagrams(lines))
    assert max(map(len, found)) <= MOST_BYTES_OF_A_DATAGRAM
    assert b"\n".join(found).split(b"\n") == lines


def test_a_server_that_is_not_there_ends_nothing(report, monkeypatch):
    monkeypatch.setenv("STATSD_ADDRESS", "127.0.0.1:9")
    sink = StatsD()
    sink.write(report)
    sink.write(report)


@pytest.mark.parametrize("address", ["localhost", ":8125", "host:port"])
def test_an_address_without_a_port_is_refused(address, monkeypatch):
    monkeypatch.setenv("STATSD_ADDRESS", address)
    with pytest.raises(UsageError, match=r"write it like 127.0.0.1:8125"):
        StatsD()


@pytest.fixture
def collector():
    """An HTTP server: its address, and (path, headers, JSON) of what it was sent."""
    sent = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            sent.append((self.path, dict(self.headers), json.loads(content)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", sent
        server.shutdown()


def points_of(told, name):
    (metrics,) = [each["metrics"] for each in told["resourceMetrics"][0]["scopeMetrics"]]
    (metric,) = [each for each in metrics if each["name"] == name]
    return metric, [point["asDouble"] for point in (metric.get("sum") or metric["gauge"])["dataPoints"]]


def test_a_collector_gets_what_was_counted(report, collector, monkeypatch):
    url, sent = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url + "/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b,other=c")
    times = iter((10, 20))
    Collector(clock=lambda: next(times)).write(report)
    ((path, headers, told),) = sent
    assert (path, headers["Content-Type"]) == ("/v1/metrics", "application/json")
    assert {name.lower(): value for name, value in headers.items()}["api-key"] == "a b"
    completed, values = points_of(told, "neuron.executions_completed")
    assert (values, completed["sum"]["isMonotonic"], completed["unit"]) == ([28], True, "{event}")
    (point,) = completed["sum"]["dataPoints"]
    assert (point["startTimeUnixNano"], point["timeUnixNano"]) == ("10", "20")
    assert points_of(told, "neuron.neuroncore_utilization")[1] == [50, 50]


def test_opentelemetrys_own_messages_hold_a_request(report):
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    text = json.dumps(request(measurements(report), 10, 20))
    message = json_format.Parse(text, service.ExportMetricsServiceRequest(), ignore_unknown_fields=False)
    metrics = {each.name: each for each in message.resource_metrics[0].scope_metrics[0].metrics}
    assert metrics["neuron.executions_completed"].sum.aggregation_temporality == 1
    assert [point.as_double for point in metrics["neuron.neuroncore_utilization"].gauge.data_points] == [
        50,
        50,
    ]
    resource = {each.key: each.value.string_value for each in message.resource_metrics[0].resource.attributes}
    assert resource["service.name"] == "neuron-monitor"


def test_a_collector_that_does_not_answer_is_told_of_once(report, monkeypatch, capsys):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    sink = Collector()
    sink.write(report)
    sink.write(report)
    assert capsys.readouterr().err.count("was not told") == 1


def test_an_endpoint_that_is_no_address_is_refused(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")
    with pytest.raises(UsageError, match="write it like http://localhost:4318"):
        Collector()
