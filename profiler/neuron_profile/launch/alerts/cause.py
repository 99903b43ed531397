"""What an alert's profile says the cause is: its first finding, as a short report."""

from __future__ import annotations

import importlib
import json
import socket
import time
from dataclasses import asdict
from pathlib import Path

from neuron_profile.analysis.advice.advise import RULES, advise
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.reports.quantities import percent
from neuron_tools import open_profile
from neuron_tools.frozen import frozen


@frozen
class AlertReport:
    """A short report of an alert.

    Attributes:
        reason: The alert, in words.
        profile: The folder of the profile with what the program did before it.
        host: Where that is.
        at_s: When the report was made (Unix time).
        rule: The first finding's rule; "" where nothing was found.
        title: What it is.
        file, line: The user's own line; "" and 0 where it is no line's.
        gain: What mending it saves of the program, 0 to 1.
    """

    reason: str
    profile: str
    host: str
    at_s: float
    rule: str = ""
    title: str = ""
    file: str = ""
    line: int = 0
    gain: float = 0.0

    @property
    def sentence(self) -> str:
        """e.g. "train.py:21: Matmul in fp32, saves 18.0 %"."""
        if not self.rule:
            return "nothing was found that slows the program down"
        place = f"{Path(self.file).name}:{self.line}: " if self.file else ""
        saves = f", saves {percent(self.gain)}" if self.gain > 0 else ""
        return f"{place}{self.title.rstrip('.')}{saves}"

    @property
    def command(self) -> str:
        """What opens the Explorer on the profile, which holds the moment of the alert."""
        return f"neuron-profile view {self.profile}"

    def as_json(self) -> str:
        """One line of JSON."""
        return json.dumps({**asdict(self), "sentence": self.sentence, "command": self.command})


# What writing and asking a profile loads when it is first done, beside the rules.
_LOADED_LATE = ("neuron_tools.profile.timeline.builder", "neuron_tools.simulator.kernel", "pyarrow.parquet")


def prepare() -> None:
    """Load what reports take, so that the first does not wait for it."""
    for name in _LOADED_LATE:
        importlib.import_module(name)
    for _ in RULES.load_all():
        pass


def report_on(profile: Path, reason: str) -> AlertReport:
    """The report of an alert's profile.

    Raises:
        NeuronToolsError: The profile cannot be read.
    """
    with open_profile(profile) as opened:
        findings = advise(opened)
    report = AlertReport(reason, str(profile), socket.gethostname(), time.time())
    return _with_finding(report, findings[0]) if findings else report


def _with_finding(report: AlertReport, finding: Finding) -> AlertReport:
    place = finding.place
    return AlertReport(
        report.reason, report.profile, report.host, report.at_s,
        finding.rule, finding.title, place.file, place.line, finding.gain,
    )  # fmt: skip
