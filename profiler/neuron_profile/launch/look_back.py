"""Runs a command and keeps its last seconds, which become a profile when they matter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from neuron_profile.launch.child import Ending, run
from neuron_profile.launch.destination import SUFFIX, find_destination, shown
from neuron_tools.capture.environment import child_environment
from neuron_tools.capture.look_back.rules import Alert, Rule, never_seen, parse_rule
from neuron_tools.capture.look_back.snapshot import Snapshot, write_snapshot
from neuron_tools.capture.look_back.watch import LookBackWatch
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import NeuronToolsError, UsageError

DEFAULT_RULES = ("error",)
MOST_ALERTS = 20
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min)?")
_NS_OF_UNIT = {"ms": 10**6, "s": 10**9, None: 10**9, "min": 60 * 10**9}


def parse_time_ns(text: str) -> int:
    """A time such as "30s", "500ms" or "2min" in nanoseconds.

    Raises:
        UsageError: It is none, or 0.
    """
    found = _TIME.fullmatch(text.strip())
    duration_ns = round(float(found[1]) * _NS_OF_UNIT[found[2]]) if found else 0
    if duration_ns <= 0:
        raise UsageError(f"'{text}' is no time to keep: write e.g. 30s, 500ms or 2min.")
    return duration_ns


def look_back_over(command: Sequence[str], options: CaptureOptions, last: str, rules: Sequence[str]) -> int:
    """Run a command; returns its exit status.

    Raises:
        UsageError: The time or a rule is not understood.
        NeuronToolsError: The command cannot be started.
    """
    watched = [parse_rule(text) for text in rules or DEFAULT_RULES]
    look_back_s = parse_time_ns(last) / 1e9
    with tempfile.TemporaryDirectory(prefix="neuron-look-back-", dir=_memory_folder()) as logs:
        options = replace(options, look_back_s=look_back_s, logs=Path(logs))
        click.echo(
            f"neuron-profile: keeping the last {last} on {options.target} (simulated); "
            "'neuron-profile snapshot PID' writes them as a profile",
            err=True,
        )
        return _Session(options, watched).run(command)


def _memory_folder() -> str | None:
    """Where logs go: memory, where the machine has such a folder."""
    folder = "/dev/shm"
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


class _Session:
    """One command under look-back."""

    def __init__(self, options: CaptureOptions, rules: Sequence[Rule]) -> None:
        self._options = options
        self._rules = rules
        self._raised: list[Alert] = []
        self._watch = LookBackWatch(options, rules, self._raised.append)
        self._alerts = 0
        self._reasons: list[str] = []
        self._writing: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str]) -> int:
        ending = run(command, {**os.environ, **child_environment(self._options)}, self._look)
        self._look()
        self._write_waiting()
        failed = ending.exit_status != 0 and not ending.interrupted
        if failed and any(rule.series == "error" for rule in self._rules):
            self._write_last(ending)
        for rule in self._watch.unseen_rules():
            click.echo(f"neuron-profile: {never_seen(rule)}", err=True)
        if not self._alerts:
            click.echo("neuron-profile: no rule was met, so no profile was written.", err=True)
        return ending.exit_status

    def _look(self) -> None:
        """Write one profile for all rules met now, beside the running command, which must not wait for it."""
        self._watch.look()
        if self._raised:
            reason = "; ".join(f"{alert.rule}: {alert.what}" for alert in self._raised)
            self._raised.clear()
            click.echo(f"neuron-profile: alert: {reason}", err=True)
            self._reasons.append(reason)
        if self._reasons and (self._writing is None or self._writing.poll() is not None):
            self._write_next()

    def _write_waiting(self) -> None:
        """The command is gone: write what was met while the last profile was written."""
        while self._writing is not None:
            self._writing.wait()
            self._writing = None
            if self._reasons:
                self._write_next()

    def _write_next(self) -> None:
        """One profile for all rules that were met since the last began."""
        reason = "; ".join(self._reasons)
        self._reasons.clear()
        self._alerts += 1
        if self._alerts > MOST_ALERTS:
            click.echo(f"neuron-profile: {MOST_ALERTS} profiles were written: no more are.", err=True)
        else:
            self._writing = self._start_writing(reason)

    def _start_writing(self, reason: str) -> subprocess.Popen[bytes]:
        module = "neuron_profile.launch.alert_writer"
        arguments = [self._options.to_json(), str(self._free_directory()), reason]
        # A session of its own: Ctrl-C ends the command, not the profile of what it did.
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdin=subprocess.DEVNULL, start_new_session=True
        )

    def _write_last(self, ending: Ending) -> None:
        """The command is gone: what it did last is still in the logs."""
        self._alerts += 1
        what = f"signal {ending.signal}" if ending.signal else f"exit status {ending.exit_status}"
        click.echo(f"neuron-profile: alert: error: the command ended with {what}", err=True)
        directory = self._free_directory()
        try:
            write_snapshot(Snapshot(self._options, reason=f"error: the command ended with {what}"), directory)
            click.echo(f"Profile: {shown(directory)}", err=True)
        except NeuronToolsError as error:
            click.echo(f"Error: {error}", err=True)

    def _free_directory(self) -> Path:
        asked = self._options.directory
        return find_destination(None, f"{asked.name.removesuffix(SUFFIX)}-alert", asked.parent)
