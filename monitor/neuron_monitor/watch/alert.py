"""What a rule says when it is met, and how that is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from neuron_monitor.api.view import ProcessView
from neuron_tools.frozen import frozen

MESSAGE_VERSION = "4"


@frozen
class Alert:
    """One alert.

    Attributes:
        name: As the rules for Prometheus in `monitor/deploy` call the same, e.g. "NeuronThrottled".
        summary: What was seen, in words.
        labels: What it is about: `pid` and `runtime_tag`, or `neuron_device_index`.
    """

    name: str
    summary: str
    labels: Mapping[str, str]

    @property
    def key(self) -> tuple[str, ...]:
        """The same for the same thing seen again."""
        return (self.name, *self.labels.values())


def of_process(name: str, summary: str, view: ProcessView) -> Alert:
    """An alert about a process."""
    process = view.process
    return Alert(name, f"{process.tag} {summary}", {"pid": str(process.pid), "runtime_tag": process.tag})


def message(alerts: Sequence[Alert], at_s: float) -> dict[str, Any]:
    """Alerts in the form in which Prometheus's Alertmanager sends them to webhooks."""
    began = datetime.fromtimestamp(at_s, timezone.utc).isoformat()
    return {
        "version": MESSAGE_VERSION,
        "status": "firing",
        "receiver": "neuron-monitor",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": alert.name, **alert.labels},
                "annotations": {"summary": alert.summary},
                "startsAt": began,
            }
            for alert in alerts
        ],
    }
