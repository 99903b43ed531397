"""The configuration: which groups are reported, how often, and of which processes.

The form is that of AWS's neuron-monitor (aws-neuron-sdk, neuron-monitor user guide), with groups of our own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuron_monitor.errors import ConfigurationError
from neuron_tools.frozen import frozen

DEFAULT_PERIOD_S = 5.0
MINIMUM_PERIOD_S = 0.01
AWS_RUNTIME_GROUPS = ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats")
OUR_RUNTIME_GROUPS = ("neuroncore_activity",)
AWS_SYSTEM_GROUPS = ("vcpu_usage", "memory_info", "neuron_hw_counters")
OUR_SYSTEM_GROUPS = ("neuron_device_status",)
KUBERNETES_GROUP = "neuron_k8s_info"
RUNTIME_GROUPS = (*AWS_RUNTIME_GROUPS, *OUR_RUNTIME_GROUPS)
SYSTEM_GROUPS = (*AWS_SYSTEM_GROUPS, *OUR_SYSTEM_GROUPS)
OLD_NAMES = {"inference_stats": "execution_stats"}
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


@frozen
class Group:
    """One group to report: its name and how often, in seconds."""

    name: str
    period_s: float


@frozen
class RuntimeGroups:
    """Groups of the processes whose whole tag the filter finds something in."""

    tag_filter: re.Pattern[str]
    groups: tuple[Group, ...]


@frozen
class Configuration:
    """What to report."""

    runtimes: tuple[RuntimeGroups, ...]
    system: tuple[Group, ...]

    def periods(self) -> set[float]:
        """All periods that occur."""
        return {group.period_s for group in self._all()}

    def _all(self) -> list[Group]:
        return [*self.system, *(group for runtime in self.runtimes for group in runtime.groups)]


def default_configuration(period_s: float = DEFAULT_PERIOD_S, *, with_ours: bool = True) -> Configuration:
    """All groups of all processes, in one period."""
    runtime = RUNTIME_GROUPS if with_ours else AWS_RUNTIME_GROUPS
    system = SYSTEM_GROUPS if with_ours else AWS_SYSTEM_GROUPS
    return Configuration(
        runtimes=(RuntimeGroups(re.compile(".*"), tuple(Group(name, period_s) for name in runtime)),),
        system=tuple(Group(name, period_s) for name in system),
    )


def read_configuration(path: str) -> Configuration:
    """The configuration in a file.

    Raises:
        ConfigurationError: The file cannot be read, is no JSON, or asks for something that there is not.
    """
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from error
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON: {error}.") from error
    try:
        return parse_configuration(told)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def parse_configuration(told: Any) -> Configuration:
    """The configuration that a JSON value stands for.

    Raises:
        ConfigurationError: It asks for something that there is not.
    """
    root = _object(told, "the configuration")
    period_s = _period(root, DEFAULT_PERIOD_S)
    runtimes = [
        _runtime(_object(entry, "an entry of neuron_runtimes"), period_s)
        for entry in _list(root, "neuron_runtimes")
    ]
    system = _groups(_list(root, "system_metrics"), period_s, (*SYSTEM_GROUPS, KUBERNETES_GROUP))
    if not system and not any(runtime.groups for runtime in runtimes):
        raise ConfigurationError("no group is asked for: name some under neuron_runtimes or system_metrics.")
    return Configuration(tuple(runtimes), system)


def parse_duration(text: str) -> float:
    """Seconds of a duration such as "1s", "500ms" or "1m30s".

    Raises:
        ConfigurationError: It is no duration, or shorter than 10 ms.
    """
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigurationError(f'{text!r} is no duration: write for example "1s", "500ms" or "1m30s".')
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if seconds < MINIMUM_PERIOD_S:
        raise ConfigurationError(f'the period {text!r} is too short: the shortest is "10ms".')
    return float(seconds)


def _runtime(entry: Mapping[str, Any], period_s: float) -> RuntimeGroups:
    text = entry.get("tag_filter", ".*")
    try:
        tag_filter = re.compile(text)
    except (re.error, TypeError) as error:
        raise ConfigurationError(f"the tag_filter {text!r} is no regular expression: {error}.") from error
    groups = _groups(_list(entry, "metrics"), _period(entry, period_s), RUNTIME_GROUPS)
    return RuntimeGroups(tag_filter, groups)


def _groups(entries: list[Any], period_s: float, known: tuple[str, ...]) -> tuple[Group, ...]:
    groups = []
    for entry in entries:
        told = _object(entry, "a metric")
        name = OLD_NAMES.get(told.get("type", ""), told.get("type"))
        if name not in known:
            raise ConfigurationError(f"there is no metric type {name!r} here; there are: {', '.join(known)}.")
        groups.append(Group(name, _period(told, period_s)))
    return tuple(groups)


def _period(told: Mapping[str, Any], inherited_s: float) -> float:
    period = told.get("period")
    if period is None:
        return inherited_s
    if not isinstance(period, str):
        raise ConfigurationError(f'a period is text such as "1s", not {period!r}.')
    return parse_duration(period)


def _object(told: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(told, dict):
        raise ConfigurationError(f"{what} must be a JSON object, not {told!r}.")
    return told


def _list(told: Mapping[str, Any], key: str) -> list[Any]:
    entries = told.get(key, [])
    if not isinstance(entries, list):
        raise ConfigurationError(f"{key} must be a list, not {entries!r}.")
    return entries
