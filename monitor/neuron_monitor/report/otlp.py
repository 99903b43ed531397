"""Reports to an OpenTelemetry collector, over HTTP in OTLP's JSON encoding.

Source: OpenTelemetry's specification, "OTLP/HTTP" and "JSON Protobuf Encoding": an
ExportMetricsServiceRequest, with times as decimal text and enumerations as numbers. Units are UCUM's, as its
conventions ask.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import orjson

from neuron_monitor.report.measurements import Measurement, Unit, measurements
from neuron_monitor.report.reporter import Report
from neuron_tools.errors import UsageError

ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
DEFAULT_ENDPOINT = "http://localhost:4318"
PATH = "/v1/metrics"
TIMEOUT_S = 2.0
UNITS: dict[Unit, str] = {
    "percent": "%",
    "bytes": "By",
    "seconds": "s",
    "count": "{event}",
    "count/second": "{operation}/s",
}
# Labels that are of the host, under the names of OpenTelemetry's conventions for resources.
RESOURCE_NAMES = {"instance_id": "host.id", "instance_type": "host.type"}
_DELTA = 1  # AGGREGATION_TEMPORALITY_DELTA


class Collector:
    """Sends each report to the collector at `$OTEL_EXPORTER_OTLP_ENDPOINT`, or to that of this machine.

    A collector that does not answer loses the report, and is told of once until it answers again.

    Args:
        clock: Unix time in nanoseconds.

    Raises:
        UsageError: The endpoint is no address.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        endpoint = os.environ.get(ENDPOINT_VARIABLE) or DEFAULT_ENDPOINT
        if urlsplit(endpoint).scheme not in ("http", "https"):
            raise UsageError(
                f"{ENDPOINT_VARIABLE}={endpoint} is no address: write it like {DEFAULT_ENDPOINT}."
            )
        self._url = endpoint.rstrip("/") + PATH
        self._headers = {"Content-Type": "application/json", **_headers(os.environ.get(HEADERS_VARIABLE, ""))}
        self._clock = clock
        self._last_ns = clock()
        self._is_told = False

    def write(self, report: Report) -> None:
        """Send one report."""
        now_ns = self._clock()
        content = orjson.dumps(request(measurements(report), self._last_ns, now_ns))
        try:
            with urlopen(Request(self._url, content, self._headers), timeout=TIMEOUT_S):
                self._is_told = False
        except (OSError, ValueError) as error:
            if not self._is_told:
                reason = getattr(error, "reason", None) or error
                print(f"neuron-monitor: {self._url} was not told: {reason}.", file=sys.stderr, flush=True)
            self._is_told = True
        self._last_ns = now_ns


def request(found: Sequence[Measurement], since_ns: int, now_ns: int) -> dict[str, Any]:
    """An ExportMetricsServiceRequest.

    Args:
        since_ns: Unix time from which on things were added.
        now_ns: Unix time of the measurements.
    """
    labels = found[0].labels if found else {}
    host = {name: labels[label] for label, name in RESOURCE_NAMES.items() if label in labels}
    named = sorted(found, key=_name)
    metrics = [_metric(list(group), since_ns, now_ns) for _, group in groupby(named, key=_name)]
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes({"service.name": "neuron-monitor", **host})},
                "scopeMetrics": [{"scope": {"name": "neuron_monitor"}, "metrics": metrics}],
            }
        ]
    }


def _name(measurement: Measurement) -> str:
    return measurement.name


def _metric(group: Sequence[Measurement], since_ns: int, now_ns: int) -> dict[str, Any]:
    one, points = group[0], [_point(each, since_ns, now_ns) for each in group]
    described = {"name": f"neuron.{one.name}", "unit": UNITS[one.unit]}
    if one.is_added:
        added = {"dataPoints": points, "aggregationTemporality": _DELTA, "isMonotonic": True}
        return {**described, "sum": added}
    return {**described, "gauge": {"dataPoints": points}}


def _point(measurement: Measurement, since_ns: int, now_ns: int) -> dict[str, Any]:
    own = {name: value for name, value in measurement.labels.items() if name not in RESOURCE_NAMES}
    return {
        "attributes": _attributes(own),
        **({"startTimeUnixNano": str(since_ns)} if measurement.is_added else {}),
        "timeUnixNano": str(now_ns),
        "asDouble": float(measurement.value),
    }


def _attributes(told: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in told.items()]


def _headers(text: str) -> dict[str, str]:
    """The headers of "name=value,name=value", percent-encoded as baggage is."""
    pairs = [entry.partition("=") for entry in text.split(",")]
    return {name.strip(): unquote(value.strip()) for name, found, value in pairs if found}
