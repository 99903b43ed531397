"""Whether a profile keeps a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from neuron_profile.analysis.advice.advise import advise
from neuron_profile.analysis.budget.budget import TOTAL_BOUNDS, Budget
from neuron_profile.analysis.comparison.difference import compare
from neuron_profile.analysis.hotspots import Hotspots, LineCost, ModuleNode, find_hotspots
from neuron_profile.analysis.occupancy import Occupancy, measure_occupancy
from neuron_tools import open_profile
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_COMPILATIONS = "SELECT count(*) AS n FROM Executable WHERE kind = 'graph'"


@frozen
class Check:
    """One bound and what was measured; `measured` None = the profile does not tell."""

    name: str
    measured: float | None
    relation: str
    limit: float
    unit: str
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the bound is kept; what cannot be measured is not."""
        if self.measured is None:
            return False
        return self.measured <= self.limit if self.relation == "<=" else self.measured >= self.limit


def check_budget(profile: Profile, budget: Budget) -> tuple[Check, ...]:
    """Every bound of a budget, measured.

    Raises:
        NeuronToolsError: The base profile cannot be opened.
    """
    parts = (_totals, _parts, _findings, _base)
    return tuple(check for part in parts for check in part(profile, budget))


def _totals(profile: Profile, budget: Budget) -> Iterator[Check]:
    if not budget.total:
        return
    occupancy, metrics = measure_occupancy(profile), profile.summary()
    for name, limit in budget.total.items():
        measured, unit = _total(profile, name, occupancy, metrics)
        yield Check(name, measured, TOTAL_BOUNDS[name], limit, unit)


def _total(profile: Profile, name: str, occupancy: Occupancy, metrics: Any) -> tuple[float | None, str]:
    if name in ("time_ms", "device_time_ms"):
        return _time_of_all_ms(name, occupancy, metrics), "ms"
    if name in ("mfu_min", "mbu_min"):
        value = metrics.get(f"{name[:3]}_estimated_percent")
        return (float(value) if value is not None else None), ""
    if name == "compilations":
        return float(profile.query(_COMPILATIONS).to_pylist()[0]["n"]), ""
    if name == "executions":
        return float(occupancy.executions), ""
    return _peak_mb(profile), "MB"


def _time_of_all_ms(name: str, occupancy: Occupancy, metrics: Any) -> float | None:
    """Of the executions; of a profile of the device alone, which has none, its whole time."""
    if not occupancy.executions:
        total_s = metrics.get("total_time")
        return float(total_s) * 1e3 if total_s else None
    if name == "device_time_ms":
        return occupancy.device_ns / 1e6
    return occupancy.window_ns / max(1, occupancy.cores) / 1e6


def _peak_mb(profile: Profile) -> float | None:
    from neuron_profile.analysis.transfers import find_memory_peaks

    peaks = find_memory_peaks(profile)
    return max((peak.peak_bytes for peak in peaks), default=0) / 1e6 if peaks else None


def _parts(profile: Profile, budget: Budget) -> Iterator[Check]:
    if not any(budget.parts.values()):
        return
    hotspots = find_hotspots(profile)
    for kind, bounds in budget.parts.items():
        for what, limit in bounds.items():
            yield Check(f"{kind} {what}", _time_ms(hotspots, kind, what), "<=", limit, "ms")


def _time_ms(hotspots: Hotspots, kind: str, what: str) -> float | None:
    if kind == "module":
        node = _module(hotspots.modules, what.strip("/"))
        return node.cost.device_ns / 1e6 if node else None
    if kind == "operation":
        times = [row.cost.device_ns for row in hotspots.operations if row.name == what]
    else:
        file, _, line = what.rpartition(":")
        times = _line_times(hotspots.lines, file, line) or _line_times(hotspots.exact_lines, file, line)
    return sum(times) / 1e6 if times else None


def _line_times(lines: Iterable[LineCost], file: str, line: str) -> list[float]:
    return [
        row.cost.device_ns
        for row in lines
        if str(row.place.line) == line and (row.place.file == file or row.place.file.endswith("/" + file))
    ]


def _module(node: ModuleNode, path: str) -> ModuleNode | None:
    if node.path.strip("/") == path:
        return node
    return next((found for child in node.children if (found := _module(child, path))), None)


def _findings(profile: Profile, budget: Budget) -> Iterator[Check]:
    if not budget.forbidden:
        return
    findings = [finding for finding in advise(profile) if finding.gain >= budget.minimum_gain]
    for name in budget.forbidden:
        found = [finding for finding in findings if finding.rule == name]
        places = ", ".join(str(finding.place) for finding in found)
        yield Check(f"findings of {name}", float(len(found)), "<=", 0.0, "", places)


def _base(profile: Profile, budget: Budget) -> Iterator[Check]:
    if budget.base is None:
        return
    with open_profile(budget.base) as base:
        difference = compare(base, profile)
    before = difference.base_total_ns
    grown = (difference.new_total_ns / before - 1) * 100 if before else None
    worst = max(difference.deltas, key=lambda delta: delta.delta_ns, default=None)
    note = f"most at {worst.key.module} {worst.key.operation}" if worst and worst.delta_ns > 0 else ""
    yield Check(f"regression against {budget.base.name}", grown, "<=", budget.most_percent, "%", note)
