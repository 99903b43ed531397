"""Answers alerts: a snapshot and a report of each capture that they are about, at most so often."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from neuron_profile.launch.alerts.cause import AlertReport, report_on
from neuron_profile.launch.alerts.offenders import Recorded, offenders, recorded_processes
from neuron_profile.launch.alerts.telling import Listeners, keep
from neuron_profile.launch.destination import SUFFIX
from neuron_tools.capture.look_back.snapshot import Snapshot, write_snapshot
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

MOST_REASON = 500
# An end before is none at all: Go's zero time.
EARLIEST_YEAR = 1970


@frozen
class Alarm:
    """One alert that fires.

    Attributes:
        reason: In words.
        labels: As Prometheus has them; `pid` and `runtime_tag` name the process.
    """

    reason: str
    labels: Mapping[str, str]


def alarms_in(message: Any) -> list[Alarm]:
    """The alerts that fire in a message of Alertmanager's, or in a list of Prometheus's own.

    Those that are resolved are passed over.

    Raises:
        ValueError: It is no such message.
    """
    alerts = message.get("alerts") if isinstance(message, dict) else message
    if not isinstance(alerts, list) or message == []:
        raise ValueError("The message has no list 'alerts'.")
    found = []
    for alert in alerts:
        labels, notes = (_texts(alert, name) for name in ("labels", "annotations"))
        if not isinstance(alert, dict) or not _fires(alert):
            continue
        name = labels.get("alertname", "alert")
        what = notes.get("summary") or notes.get("description")
        found.append(Alarm(f"{name}: {what}"[:MOST_REASON] if what else name[:MOST_REASON], labels))
    return found


def _fires(alert: Mapping[str, Any]) -> bool:
    """Whether it still does: Alertmanager says so, Prometheus says when it ends."""
    if "status" in alert:
        return bool(alert["status"] == "firing")
    try:
        ends = datetime.fromisoformat(str(alert.get("endsAt")).replace("Z", "+00:00"))
        return ends.year < EARLIEST_YEAR or ends.timestamp() > time.time()
    except ValueError:
        return True


def _texts(alert: Any, name: str) -> dict[str, str]:
    told = alert.get(name) if isinstance(alert, dict) else None
    return {str(key): str(value) for key, value in told.items()} if isinstance(told, dict) else {}


@dataclass
class Responder:
    """Answers alerts with profiles in a folder.

    Attributes:
        folder: Where profiles and reports go.
        listeners: Who is told.
        pause_s: A capture that was looked at is left alone for so long.
        most_profiles: The oldest beyond these are removed.
        say: Takes each line for the terminal.
    """

    folder: Path
    listeners: Listeners
    pause_s: float
    most_profiles: int
    say: Callable[[str], None]
    _looked_at: dict[Path, float] = field(default_factory=dict)

    def answer(self, alarms: Sequence[Alarm]) -> list[AlertReport]:
        """Look at each capture that the alerts are about, once for all of them."""
        recorded = recorded_processes()
        reasons: dict[Path, list[str]] = {}
        chosen: dict[Path, Recorded] = {}
        for alarm in alarms:
            for process in offenders(alarm.labels, recorded):
                logs = process.options.log_directory
                chosen[logs] = process
                reasons.setdefault(logs, []).append(alarm.reason)
        if alarms and not chosen:
            self.say(f"{alarms[0].reason}: no look-back capture of yours records that process.")
        reports = [
            self._look(chosen[logs], "; ".join(reasons[logs])) for logs in chosen if self._is_due(logs)
        ]
        return [report for report in reports if report is not None]

    def _is_due(self, logs: Path) -> bool:
        now = time.monotonic()
        if now - self._looked_at.get(logs, -self.pause_s) < self.pause_s:
            return False
        self._looked_at[logs] = now
        return True

    def _look(self, process: Recorded, reason: str) -> AlertReport | None:
        directory = self.folder / f"alert-{time.strftime('%Y%m%d-%H%M%S')}-{process.pid}{SUFFIX}"
        try:
            write_snapshot(Snapshot(process.options, reason=reason), directory)
            report = report_on(directory, reason)
        except NeuronToolsError as error:
            self.say(f"{reason}: {error}")
            return None
        self._remove_oldest()
        keep(report, self.folder)
        for line in (f"{reason}: {report.sentence}", *self.listeners.tell(report)):
            self.say(line)
        return report

    def _remove_oldest(self) -> None:
        profiles = sorted(self.folder.glob(f"alert-*{SUFFIX}"), key=lambda path: path.stat().st_mtime)
        for old in profiles[: -self.most_profiles]:
            shutil.rmtree(old, ignore_errors=True)
