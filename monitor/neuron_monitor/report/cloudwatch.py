"""Reports as CloudWatch's embedded metrics on standard output, for an agent that reads a log.

Source: Amazon CloudWatch User Guide, "Specification: Embedded metric format": a line has the values and the
dimensions beside `_aws`, which says what of them is a metric. What has the same dimensions shares a line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, BinaryIO

import orjson

from neuron_monitor.report.measurements import Measurement, Unit, measurements
from neuron_monitor.report.reporter import Report

NAMESPACE = "Neuron"
UNITS: dict[Unit, str] = {
    "percent": "Percent",
    "bytes": "Bytes",
    "seconds": "Seconds",
    "count": "Count",
    "count/second": "Count/Second",
}


class EmbeddedMetrics:
    """Writes the lines of each report at once.

    Args:
        out: Where they go; standard output by default.
        clock: Unix time in seconds.
    """

    def __init__(self, out: BinaryIO | None = None, clock: Callable[[], float] = time.time) -> None:
        self._out = out or sys.stdout.buffer
        self._clock = clock

    def write(self, report: Report) -> None:
        """Write one report.

        Raises:
            OSError: Standard output cannot be written to.
        """
        timestamp_ms = int(1000 * self._clock())
        lines = [
            orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
            for document in documents(report, timestamp_ms)
        ]
        self._out.write(b"".join(lines))
        self._out.flush()


def documents(report: Report, timestamp_ms: int) -> list[dict[str, Any]]:
    """A report in documents of one set of dimensions each.

    Args:
        timestamp_ms: Unix time.
    """
    found = sorted(measurements(report), key=_dimensions)
    return [_document(list(group), timestamp_ms) for _, group in groupby(found, key=_dimensions)]


def _dimensions(measurement: Measurement) -> list[tuple[str, str]]:
    return sorted(measurement.labels.items())


def _document(group: Sequence[Measurement], timestamp_ms: int) -> dict[str, Any]:
    labels = dict(group[0].labels)
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(labels)],
        "Metrics": [{"Name": each.name, "Unit": UNITS[each.unit]} for each in group],
    }
    return {
        "_aws": {"Timestamp": timestamp_ms, "CloudWatchMetrics": [directive]},
        **labels,
        **{each.name: each.value for each in group},
    }
