import json
import re

import pytest
from plotly.utils import PlotlyJSONEncoder

from neuron_monitor.dashboard.app import make_fleet_app, make_local_app
from neuron_monitor.dashboard.charts import CHARTS, make_extension, make_figure, make_layout
from neuron_monitor.dashboard.collector import Collector
from neuron_monitor.dashboard.fleet import SPREAD, FleetHost, FleetSource, _urgency
from neuron_monitor.dashboard.fleet_page import _host_table, matching
from neuron_monitor.dashboard.local_page import parse_moment
from neuron_monitor.dashboard.parts import device_grid, figures, notices, process_table
from neuron_monitor.dashboard.server import guard
from neuron_monitor.errors import PrometheusQueryError
from neuron_tools.web_access import Access
from tests.fixtures.neuron_sysfs import SysfsTree, held, process_core


@pytest.fixture
def collector(simulated, make_sampler, clock, pid):
    """Two seconds of a process on core 1 of 8, which it used for a half."""
    wall = iter(range(1_700_000_000, 1_800_000_000))
    for second in (1, 2, 3):
        core = process_core(
            simulated,
            1,
            status={"success": 10 * second},
            inference_count=10 * second,
            busy_ns=second * 500_000_000,
            device_memory=held(tensors=1 << 30),
            latency={"total": {"2000000": second}, "device": {}},
        )
        simulated.publish(
            pid, [1], tag="train", cores={"1": core}, elapsed_ns=second * 10**9, published_at=float(second)
        )
        if second == 1:
            collector = Collector(make_sampler(simulated), 100, lambda: next(wall))
        else:
            clock.pass_seconds(1)
            collector.update()
    return collector


def text_of(component):
    return json.dumps(component, cls=PlotlyJSONEncoder)


def values(collector):
    return dict(zip(collector.history.columns, collector.history.newest().values))


def test_a_row_has_the_numbers_of_the_last_second(collector):
    row = values(collector)
    assert row["utilization_mean"] == row["core_1_utilization"] == pytest.approx(0.5)
    assert row["core_0_utilization"] == 0
    assert row["memory_tensors_bytes"] == 1 << 30
    assert row["completed_per_second"] == pytest.approx(10)
    assert row["latency_total_p99_seconds"] == 0.002


def test_devices_that_come_later_begin_a_new_history(tmp_path, make_sampler, clock):
    sampler = make_sampler(SysfsTree(tmp_path / "tree", devices=0))
    collector = Collector(sampler, 10)
    collector.update()
    SysfsTree(tmp_path / "tree", devices=1)
    clock.pass_seconds(1)
    collector.update()
    assert "core_7_utilization" in collector.history.columns
    assert len(collector.history.since(0)) == 1


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01 00:00:01.5", 1500),
        ("1970-01-01 00:00:01.53125", 1531.25),
        ("1970-01-01T00:01", 60_000),
        ("1970-01-02", 86_400_000),
    ],
)
def test_moments_as_plotly_writes_them(text, milliseconds):
    assert parse_moment(text).timestamp() * 1000 == pytest.approx(milliseconds)


def test_every_chart_draws_its_lines(collector):
    rows = collector.history.since(0)
    for chart in CHARTS:
        figure = make_figure(chart, collector.history, rows, "dark")
        assert [len(trace["x"]) for trace in figure["data"]] == [2] * len(chart.lines)
        extension = make_extension(chart, collector.history, rows[-1:], 300)
        assert [len(points) for points in extension[0]["y"]] == [1] * len(chart.lines)
        text_of(figure)


def test_the_grid_marks_cores_in_use(collector, pid):
    text = text_of(device_grid(collector.view))
    assert "core 1: 50 %" in text
    assert f"pid {pid}" in text
    assert text.count("not in use") == 7


def test_the_table_names_the_process(collector, pid):
    text = text_of(process_table(collector.view))
    assert '"train"' in text
    assert f'"{pid}"' in text
    assert "2 ms" in text


def test_the_figures_stand_at_the_top(collector):
    text = text_of(figures(collector.view, collector.history, collector.history.newest()))
    assert "8 physical cores" in text
    assert "of 96 GiB" in text


def test_what_cannot_be_read_is_told_on_the_page(simulated, make_sampler):
    simulated.write("neuron0/stats/hardware/mem_ecc_corrected", "?")
    collector = Collector(make_sampler(simulated), 10)
    view = collector.update()
    assert "mem_ecc_corrected: not a number" in text_of(notices(view, ""))
    assert "no space" in text_of(notices(view, "no space"))


@pytest.fixture
def client(collector):
    access = Access("neuron-monitor", 3010, token="secret")
    server = guard(make_local_app(collector, 1.0, "host"), access)
    return server.test_client()


LOCAL = {"Host": "127.0.0.1:3010"}


def test_the_token_opens_the_page_and_leaves_the_address(client):
    refused = client.get("/", headers=LOCAL)
    assert refused.status_code == 403
    admitted = client.get("/?token=secret", headers=LOCAL)
    assert (admitted.status_code, admitted.headers["Location"]) == (302, "/")
    assert client.get("/", headers=LOCAL).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:3010"},
        {"Host": "127.0.0.1:3011"},
        {**LOCAL, "Origin": "http://evil.example"},
        {**LOCAL, "Origin": "null"},
    ],
)
def test_other_names_and_other_sites_are_refused_even_with_the_token(client, headers):
    assert client.get("/?token=secret", headers=headers).status_code == 403


def test_data_needs_the_token_too(client):
    for path in ("/_dash-layout", "/_dash-dependencies"):
        assert client.get(path, headers=LOCAL).status_code == 403
    assert client.post("/_dash-update-component", headers=LOCAL, json={}).status_code == 403


def test_the_page_loads_nothing_from_elsewhere(client):
    client.get("/?token=secret", headers=LOCAL)
    page = client.get("/", headers=LOCAL)
    assert re.findall(r'(?:src|href)="(?:https?:)?//', page.text) == []
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


ANSWERS = {
    "up": [("a:8000", 1), ("b:8000", 0)],
    "seen": [("a:8000", 1_700_000_000), ("b:8000", 1_699_999_000)],
    "utilization": [("a:8000", 0.5)],
    "memory": [("a:8000", 0.25)],
}


def ask_prometheus(path, parameters):
    from neuron_monitor.dashboard.fleet import QUERIES

    name = next(
        name
        for name, query in QUERIES.items()
        if query.replace("$job", "neuron.*").replace("$remembered", "1d") == parameters["query"]
    )
    found = ANSWERS.get(name, [])
    if path.endswith("query_range"):
        return {
            "result": [{"metric": {"instance": host}, "values": [[1, str(value)]]} for host, value in found]
        }
    return {"result": [{"metric": {"instance": host}, "value": [1, str(value)]} for host, value in found]}


def test_a_host_that_does_not_answer_is_shown_and_marked():
    source = FleetSource("http://prometheus:9090/", ask=ask_prometheus)
    hosts = source.hosts()
    assert [(host.instance, host.is_up) for host in hosts] == [("b:8000", False), ("a:8000", True)]
    text = text_of(_host_table(hosts))
    assert "down, last seen" in text
    assert "50 %" in text
    assert source.series("utilization", 900) == {"a:8000": [(1.0, 0.5)]}


def fleet_of(count):
    """Hosts of which the third has errors and the second idle cores."""
    errors, idle = {"h2:8000": 0.5}, {"h1:8000": 4}
    told = {f"h{number}:8000": {"up": 1.0, "utilization": 0.9} for number in range(count)}
    return [
        FleetHost(
            name,
            "trn2.48xlarge",
            "",
            True,
            None,
            {**values, "errors": errors.get(name, 0), "idle": idle.get(name, 0)},
        )
        for name, values in told.items()
    ]


def test_the_worst_hosts_stand_first_and_others_are_found_by_name():
    hosts = sorted(fleet_of(5), key=_urgency)
    assert [host.instance for host in hosts[:2]] == ["h2:8000", "h1:8000"]
    assert [host.instance for host in matching(hosts, " H4 ")] == ["h4:8000"]
    assert len(matching(hosts, None)) == 5


def test_a_large_fleet_has_its_spread_instead_of_a_line_for_each_host():
    asked = []

    def ask(path, parameters):
        asked.append(parameters["query"])
        return {"result": [{"metric": {"instance": name}, "values": [[1, "0.5"]]} for name in SPREAD]}

    lines = FleetSource("http://prometheus:9090", ask=ask).series("memory", 900, is_spread=True)
    assert set(lines) == {"least", "median", "most"}
    assert asked[0].count("quantile(") == 3


def test_a_server_that_does_not_answer_is_told():
    with pytest.raises(PrometheusQueryError, match="does not answer"):
        FleetSource("http://127.0.0.1:9").hosts()


def test_the_page_of_a_fleet_can_be_made():
    app = make_fleet_app(FleetSource("http://prometheus:9090", ask=ask_prometheus))
    assert "Fleet at http://prometheus:9090" in text_of(app.layout)


def test_charts_of_shares_fit_low_use_and_do_not_pass_one():
    axes = [make_layout(chart, "dark")["yaxis"] for chart in CHARTS if chart.is_share]
    assert axes
    for axis in axes:
        assert "range" not in axis
        assert axis["autorangeoptions"]["clipmax"] < 1.1
        assert 0 < max(axis["autorangeoptions"]["include"]) <= 0.01
