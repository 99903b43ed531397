"""Tells an alert's report to others: a line in a file, a webhook, an annotation in Grafana."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from neuron_profile.launch.alerts.cause import AlertReport
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.frozen import frozen

REPORTS_NAME = "alerts.jsonl"
MOST_REPORTS = 1000
TIMEOUT_S = 5.0
ANNOTATIONS_PATH = "/api/annotations"


class TellError(NeuronToolsError):
    """Somebody could not be told."""


@frozen
class Listeners:
    """Who is told.

    Attributes:
        webhook: A URL that takes the report as JSON; "" for none.
        grafana: The address of a Grafana server; "" for none.
        grafana_token: Of a service account that may write annotations.
    """

    webhook: str = ""
    grafana: str = ""
    grafana_token: str = ""

    def __post_init__(self) -> None:
        for url in filter(None, (self.webhook, self.grafana)):
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
                raise UsageError(f"'{url}' is no address: write it like https://host:port/path.")

    def tell(self, report: AlertReport) -> list[str]:
        """Send a report to all; what fails is given back as sentences."""
        failures = []
        for url, content, token in self._messages(report):
            try:
                _post(url, content, token)
            except TellError as error:
                failures.append(str(error))
        return failures

    def _messages(self, report: AlertReport) -> list[tuple[str, Mapping[str, Any], str]]:
        messages: list[tuple[str, Mapping[str, Any], str]] = []
        if self.webhook:
            messages.append((self.webhook, json.loads(report.as_json()), ""))
        if self.grafana:
            url = self.grafana.rstrip("/") + ANNOTATIONS_PATH
            messages.append((url, annotation(report), self.grafana_token))
        return messages


def annotation(report: AlertReport) -> dict[str, Any]:
    """A report as Grafana takes annotations: time in ms, tags to choose by."""
    tags = ["neuron", report.host, *([report.rule] if report.rule else [])]
    text = f"{report.reason}: {report.sentence} ({report.command})"
    return {"time": round(report.at_s * 1000), "tags": tags, "text": text}


def _post(url: str, content: Mapping[str, Any], token: str) -> None:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = Request(url, json.dumps(content).encode(), headers, method="POST")
    try:
        with urlopen(request, timeout=TIMEOUT_S):
            return
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise TellError(f"{url} was not told: {' '.join(str(reason).split())}.") from error


def keep(report: AlertReport, folder: Path) -> None:
    """Add a report to the file of a folder, which keeps the last thousand."""
    path = folder / REPORTS_NAME
    lines = path.read_text().splitlines() if path.exists() else []
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w") as file:
        file.write("".join(f"{line}\n" for line in [*lines[1 - MOST_REPORTS :], report.as_json()]))
    draft.replace(path)
