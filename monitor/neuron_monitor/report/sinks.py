"""Where reports go: lines of JSON, CloudWatch, OpenTelemetry, StatsD, or what another package adds."""

from __future__ import annotations

from typing import Protocol

from neuron_monitor.report.reporter import Report
from neuron_tools.doors import Door


class Sink(Protocol):
    """Takes reports, one after the other."""

    def write(self, report: Report) -> None:
        """Take one report.

        Args:
            report: What `neuron-monitor` prints, as dictionaries, lists, strings and numbers.

        Raises:
            OSError: It cannot be written; the monitor ends.
        """


SINKS = Door(
    "neuron_monitor.sinks",
    "sink",
    (
        ("lines", "neuron_monitor.commands.stream:Lines"),
        ("cloudwatch", "neuron_monitor.report.cloudwatch:EmbeddedMetrics"),
        ("otlp", "neuron_monitor.report.otlp:Collector"),
        ("statsd", "neuron_monitor.report.statsd:StatsD"),
    ),
)
"""Each is called without arguments and gives a `Sink`."""
