"""When a look-back capture writes a profile by itself: rules such as `latency > 3 * p99` or `step > 50ms`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Table
from neuron_tools.capture.host_rows import IN_OPTIMIZER
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.records.capture_log import RecordKind

FEWEST_FOR_P99 = 100
MOST_REMEMBERED = 8192
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "": 1}
_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_RULE = re.compile(r"(latency|step|range:\S+|device_memory)\s*>\s*(.+)")
_PERCENTILE = re.compile(r"(?:(\d+(?:\.\d+)?)\s*\*\s*)?p99|p99\s*\*\s*(\d+(?:\.\d+)?)")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")

_OPTIMIZER_STEP = ".step"
_NEVER_SEEN = {
    "latency": "no compiled graph ran",
    "step": "the program marks no steps (torch.profiler.profile.step, jax.profiler.StepTraceAnnotation) and "
    "takes no two optimizer steps",
    "device_memory": "no device memory was allocated",
}

Values = npt.NDArray[np.int64]


@frozen
class Alert:
    """A rule that was met.

    Attributes:
        rule: Its text.
        what: What was seen, in words.
        host_ns: When, on the process's own virtual clock.
    """

    rule: str
    what: str
    host_ns: int = 0


@frozen
class Rule:
    """One rule.

    Attributes:
        text: As the user wrote it.
        series: "error", "latency", "step", "range:NAME" or "device_memory".
        limit: In ns or bytes; 0 where `factor` counts.
        factor: Multiple of the 99th percentile of the same series so far.
    """

    text: str
    series: str
    limit: int = 0
    factor: float = 0.0


def parse_rule(text: str) -> Rule:
    """A rule as the command line takes it.

    Raises:
        UsageError: It is none.
    """
    stripped = text.strip()
    if stripped == "error":
        return Rule(text, "error")
    found = _RULE.fullmatch(stripped)
    if found is None:
        raise _not_understood(text)
    series, bound = found[1], found[2].strip()
    percentile = _PERCENTILE.fullmatch(bound)
    if percentile is not None and series != "device_memory":
        return Rule(text, series, factor=float(percentile[1] or percentile[2] or 1))
    return Rule(text, series, limit=_amount(text, bound, _SIZES if series == "device_memory" else _UNITS))


def _amount(text: str, bound: str, units: dict[str, int]) -> int:
    found = _AMOUNT.fullmatch(bound)
    if found is None or found[2] not in units:
        raise _not_understood(text)
    return round(float(found[1]) * units[found[2]])


def _not_understood(text: str) -> UsageError:
    return UsageError(
        f"The rule '{text}' is not understood: write error, latency > 50ms, latency > 3 * p99, step > 200ms, "
        "range:NAME > 10ms or device_memory > 12GiB."
    )


def never_seen(rule: Rule) -> str:
    """Why a rule could not be met: there was nothing that it looks at."""
    series = rule.series
    why = _NEVER_SEEN.get(series) or f"no range was called '{series.removeprefix('range:')}'"
    return f"'{rule.text}' was never looked at: {why}."


@dataclass(slots=True)
class _History:
    """The last values of one series, of which the 99th percentile is taken."""

    values: Values = field(default_factory=lambda: np.zeros(0, np.int64))

    def limit(self, factor: float) -> float:
        """A multiple of the 99th percentile; infinite while too few values are known."""
        if len(self.values) < FEWEST_FOR_P99:
            return float("inf")
        return factor * float(np.percentile(self.values, 99))

    def add(self, values: Values) -> None:
        """Remember more values."""
        self.values = np.concatenate([self.values, values])[-MOST_REMEMBERED:]


class RuleWatch:
    """Holds one process's records against one rule.

    Args:
        name_of: Text of a name's number; "" while it is not known.

    Attributes:
        is_seen: Whether there was anything that the rule looks at.
    """

    def __init__(self, rule: Rule, name_of: Callable[[int], str]) -> None:
        self._rule = rule
        self._name_of = name_of
        self._held_bytes = 0
        self._histories: dict[int, _History] = {}
        self._are_steps_marked = False
        self._last_optimizer_end_ns: dict[int, int] = {}
        self.is_seen = False

    def look(self, records: Table) -> Alert | None:
        """The first of these records that meets the rule, as an alert."""
        if self._rule.series == "device_memory":
            return self._look_at_memory(records)
        chosen, values = self._values(records)
        self.is_seen |= len(chosen) > 0
        first: int | None = None
        for key in np.unique(chosen["executable"]):
            places = np.flatnonzero(chosen["executable"] == key)
            over = places[values[places] > self._limit(int(key), values[places])]
            if len(over) and (first is None or over[0] < first):
                first = int(over[0])
        if first is None:
            return None
        return self._alert(chosen[first], f"{values[first] / 1e6:.3f} ms")

    def _limit(self, key: int, values: Values) -> float:
        """What these values may not pass; they count for the percentile from the next look on."""
        if not self._rule.factor:
            return self._rule.limit
        history = self._histories.setdefault(key, _History())
        limit = history.limit(self._rule.factor)
        history.add(values)
        return limit

    def _values(self, records: Table) -> tuple[Table, Values]:
        """The records of the series, and the duration of each in ns."""
        if self._rule.series == "latency":
            chosen = records[records["kind"] == int(RecordKind.GRAPH)]
            return chosen, chosen["device_end_ns"] - chosen["host_start_ns"]
        if self._rule.series == "step":
            chosen = records[records["kind"] == int(RecordKind.STEP)]
            self._are_steps_marked |= len(chosen) > 0
            if not self._are_steps_marked:
                return self._optimizer_steps(records)
        else:
            wanted = self._rule.series.removeprefix("range:")
            chosen = self._named(records, lambda name: name == wanted)
        return chosen, chosen["host_end_ns"] - chosen["host_start_ns"]

    def _named(self, records: Table, is_wanted: Callable[[str], bool]) -> Table:
        """The ranges whose names are wanted."""
        chosen = records[records["kind"] == int(RecordKind.RANGE)]
        numbers = [number for number in np.unique(chosen["name"]) if is_wanted(self._name_of(int(number)))]
        named: Table = chosen[np.isin(chosen["name"], numbers)]
        return named

    def _optimizer_steps(self, records: Table) -> tuple[Table, Values]:
        """Of a program that marks no steps: from the end of an optimizer's step to the end of its next."""
        chosen = self._named(records, lambda name: name.endswith(_OPTIMIZER_STEP))
        chosen = chosen[(chosen["flags"] & IN_OPTIMIZER) != 0]
        places, durations = [], []
        for place, (number, end_ns) in enumerate(
            zip(chosen["name"].tolist(), chosen["host_end_ns"].tolist())
        ):
            last_ns = self._last_optimizer_end_ns.get(number)
            self._last_optimizer_end_ns[number] = end_ns
            if last_ns is not None:
                places.append(place)
                durations.append(end_ns - last_ns)
        return chosen[places], np.array(durations, np.int64)

    def _look_at_memory(self, records: Table) -> Alert | None:
        kinds = (int(RecordKind.ALLOCATE), int(RecordKind.FREE))
        chosen = records[np.isin(records["kind"], kinds)]
        if not len(chosen):
            return None
        self.is_seen = True
        signed = np.where(chosen["kind"] == kinds[0], chosen["bytes"], -chosen["bytes"])
        held = self._held_bytes + np.cumsum(signed)
        was_over, self._held_bytes = self._held_bytes > self._rule.limit, int(held[-1])
        over = np.flatnonzero(held > self._rule.limit)
        if was_over or not len(over):
            return None
        return self._alert(chosen[over[0]], f"{held[over[0]] / (1 << 20):.1f} MiB held")

    def _alert(self, record: np.void, what: str) -> Alert:
        name = self._name_of(int(record["name"]))
        return Alert(self._rule.text, f"{name}: {what}" if name else what, host_ns=int(record["host_end_ns"]))
