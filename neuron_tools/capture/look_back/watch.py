"""Watches a running look-back capture: keeps its logs short, and tells when a rule is met."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from neuron_tools.capture.definitions import DefinitionsReader
from neuron_tools.capture.look_back.ring import LogRing
from neuron_tools.capture.look_back.rules import Alert, Rule, RuleWatch
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.device.driver.root import root_folder

MOST_BYTES = 256 << 20
_ENDED_WELL = "success"


@dataclass(eq=False)
class LookBackWatch:
    """Call `look` about once a second.

    Args:
        options: Of the look-back capture.
        rules: When to alert.
        on_alert: Called with each alert; a rule that was met rests until the whole window is new.
        most_bytes: Of one process's log.
    """

    options: CaptureOptions
    rules: Sequence[Rule]
    on_alert: Callable[[Alert], None]
    most_bytes: int = MOST_BYTES
    _processes: dict[Path, _WatchedProcess] = field(default_factory=dict, init=False)

    def look(self) -> None:
        """Take in what was logged since the last call."""
        for directory in sorted(self.options.log_directory.glob("process-*")):
            if directory not in self._processes:
                self._processes[directory] = _WatchedProcess(
                    directory, self.options, self.rules, self.most_bytes
                )
            for alert in self._processes[directory].look():
                self.on_alert(alert)

    def unseen_rules(self) -> list[Rule]:
        """The rules that look at something that no process recorded."""
        seen = {rule for process in self._processes.values() for rule in process.seen_rules()}
        return [rule for rule in self.rules if rule.series != "error" and rule not in seen]

    @property
    def process_count(self) -> int:
        """Processes that have recorded something."""
        return len(self._processes)


class _WatchedProcess:
    def __init__(
        self, directory: Path, options: CaptureOptions, rules: Sequence[Rule], most_bytes: int
    ) -> None:
        self._last_ns = round(options.look_back_s * 1e9)
        self._ring = LogRing(directory, self._last_ns, most_bytes)
        self._definitions = DefinitionsReader(directory)
        self._definitions.poll()
        self._watches = [(rule, RuleWatch(rule, self._name)) for rule in rules if rule.series != "error"]
        self._error = next((rule for rule in rules if rule.series == "error"), None)
        self._failures = 0
        self._rests_until_ns: dict[Rule, int] = {}

    def look(self) -> list[Alert]:
        records = self._ring.advance()
        self._definitions.poll()
        found = [] if self._error is None else self._failed(self._error)
        if not len(records):
            return found
        now_ns = int(records["host_end_ns"].max())
        for rule, watch in self._watches:
            alert = watch.look(records)
            if alert is not None and now_ns >= self._rests_until_ns.get(rule, 0):
                self._rests_until_ns[rule] = now_ns + self._last_ns
                found.append(alert)
        return found

    def seen_rules(self) -> list[Rule]:
        """The rules that look at something that the process recorded."""
        return [rule for rule, watch in self._watches if watch.is_seen]

    def _failed(self, rule: Rule) -> list[Alert]:
        """Executions of this process that failed since the last look, as the simulated driver counts them."""
        failures, names = _failures(self._definitions.definitions.process.process_id)
        more, self._failures = failures - self._failures, max(failures, self._failures)
        return [Alert(rule.text, f"{more} executions failed: {names}")] if more > 0 else []

    def _name(self, number: int) -> str:
        return self._definitions.definitions.names.get(number, "")


def _failures(process_id: int) -> tuple[int, str]:
    """Executions of a process that did not end well, and how they ended."""
    root = root_folder()
    try:
        told = json.loads((Path(root) / "processes" / f"{process_id}.json").read_bytes()) if root else {}
    except (OSError, ValueError):
        told = {}
    counts: dict[str, int] = {}
    for core in (told.get("cores") or {}).values():
        for status, count in (core.get("status") or {}).items():
            if status != _ENDED_WELL and count:
                counts[status] = counts.get(status, 0) + int(count)
    return sum(counts.values()), ", ".join(sorted(counts))
