"""A fleet as its Prometheus server knows it: which hosts there are, which answer, and how busy they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson

from neuron_monitor.errors import PrometheusQueryError
from neuron_tools.frozen import frozen

TIMEOUT_S = 10.0
# A host that was there within this time and is no more is shown as down, not left out.
REMEMBERED = "1d"
# Beyond this, a chart has the least, the middle and the most of the fleet instead of a line for each host.
MOST_LINES = 24
SPREAD = {"least": "0", "median": "0.5", "most": "1"}
Ask = Callable[[str, Mapping[str, str]], Any]

# What is asked for each host; `instance` is Prometheus's own label of what it scrapes.
QUERIES = {
    "up": 'max by (instance) (up{job=~"$job"})',
    "seen": 'max by (instance) (max_over_time(timestamp(up{job=~"$job"} == 1)[1h:15s]))'
    ' or max by (instance) (max_over_time(timestamp(up{job=~"$job"} == 1)[$remembered:5m]))',
    "known": "max by (instance, instance_type, instance_id) "
    '(last_over_time(instance_info{job=~"$job"}[$remembered]))',
    "devices": 'count by (instance) (neuron_device_memory_used_bytes{job=~"$job"})',
    "allocated": 'count by (instance) (neuroncore_allocated{job=~"$job"} > 0)',
    "cores": 'count by (instance) (neuroncore_allocated{job=~"$job"})',
    "idle": 'count by (instance) (neuroncore_allocated_idle_seconds{job=~"$job"} > 300)',
    "utilization": 'avg by (instance) (neuroncore_utilization_ratio{job=~"$job"})',
    "memory": 'sum by (instance) (neuron_device_memory_used_bytes{job=~"$job"})'
    ' / sum by (instance) (neuron_device_memory_total_bytes{job=~"$job"})',
    "executions": 'sum by (instance) (rate(execution_status_total{job=~"$job",status_type="completed"}[1m]))',
    "errors": 'sum by (instance) (rate(execution_errors_total{job=~"$job"}[1m]))',
    "latency": 'max by (instance) (execution_latency_seconds{job=~"$job",percentile="p99"})',
}
RANGES = {
    "utilization": QUERIES["utilization"],
    "executions": QUERIES["executions"],
    "errors": QUERIES["errors"],
    "memory": QUERIES["memory"],
}


@frozen
class FleetHost:
    """One host.

    Attributes:
        is_up: Whether Prometheus reaches it.
        last_seen_s: Unix time at which it last answered, None where it is longer ago than a day.
        values: By the names of `QUERIES`; what is not known is absent.
    """

    instance: str
    type: str
    id: str
    is_up: bool
    last_seen_s: float | None
    values: Mapping[str, float]


def spread(query: str) -> str:
    """The query of the least, the middle and the most of what a query has for each host."""
    return " or ".join(
        f'label_replace(quantile({share}, {query}), "instance", "{name}", "", "")'
        for name, share in SPREAD.items()
    )


def _urgency(host: FleetHost) -> tuple[bool, float, float, float, str]:
    """Sorts the worst first: hosts that do not answer, then by errors, idle cores, and the least use."""
    known = host.values.get
    return host.is_up, -known("errors", 0.0), -known("idle", 0.0), known("utilization", 0.0), host.instance


class FleetSource:
    """Asks a Prometheus server.

    Args:
        url: Its address, e.g. "http://127.0.0.1:9090".
        job: Regular expression of the scrape jobs that are neuron-monitors.
        ask: Sends one request: path and parameters to the answer's "data".
    """

    def __init__(self, url: str, job: str = "neuron.*", ask: Ask | None = None) -> None:
        self.url = url.rstrip("/")
        self._job = job
        self._ask = ask or self._request

    def hosts(self) -> list[FleetHost]:
        """All hosts of the last day, the worst first.

        Raises:
            PrometheusQueryError: The server does not answer.
        """
        found = {name: self._instant(query) for name, query in QUERIES.items()}
        facts = {labels.get("instance", ""): labels for labels, _ in found["known"]}
        values: dict[str, dict[str, float]] = {}
        for name, samples in found.items():
            for labels, value in samples:
                values.setdefault(labels.get("instance", ""), {})[name] = value
        hosts = [
            FleetHost(
                instance=instance,
                type=facts.get(instance, {}).get("instance_type", ""),
                id=facts.get(instance, {}).get("instance_id", ""),
                is_up=told.get("up") == 1,
                last_seen_s=told.get("seen"),
                values=told,
            )
            for instance, told in values.items()
            if instance
        ]
        return sorted(hosts, key=_urgency)

    def series(
        self, name: str, window_s: int, now_s: float | None = None, *, is_spread: bool = False
    ) -> dict[str, list[tuple[float, float]]]:
        """One of `RANGES` over the last seconds: (Unix time, value) by host.

        Args:
            is_spread: Whether the names of `SPREAD` stand for the hosts.

        Raises:
            PrometheusQueryError: The server does not answer.
        """
        end = time.time() if now_s is None else now_s
        parameters = {
            "query": self._fill(spread(RANGES[name]) if is_spread else RANGES[name]),
            "start": f"{end - window_s:.0f}",
            "end": f"{end:.0f}",
            "step": f"{max(5, window_s // 240)}",
        }
        data = self._ask("/api/v1/query_range", parameters)
        return {
            entry["metric"].get("instance", ""): [(float(at), float(value)) for at, value in entry["values"]]
            for entry in data["result"]
        }

    def _instant(self, query: str) -> list[tuple[dict[str, str], float]]:
        data = self._ask("/api/v1/query", {"query": self._fill(query)})
        return [(entry["metric"], float(entry["value"][1])) for entry in data["result"]]

    def _fill(self, query: str) -> str:
        job = self._job.replace("\\", "\\\\").replace('"', '\\"')
        return query.replace("$job", job).replace("$remembered", REMEMBERED)

    def _request(self, path: str, parameters: Mapping[str, str]) -> Any:
        from urllib.request import urlopen

        address = f"{self.url}{path}?{urlencode(parameters)}"
        try:
            with urlopen(address, timeout=TIMEOUT_S) as answer:
                told = orjson.loads(answer.read())
        except (OSError, ValueError) as error:
            raise PrometheusQueryError(f"{self.url} does not answer: {error}.") from error
        if told.get("status") != "success":
            raise PrometheusQueryError(f"{self.url} refuses a query: {told.get('error')}.")
        return told["data"]
