"""A budget file: TOML, every entry a bound."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuron_profile.analysis.advice.advise import RULES
from neuron_tools.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOTAL_BOUNDS = {
    "time_ms": "<=",
    "device_time_ms": "<=",
    "mfu_min": ">=",
    "mbu_min": ">=",
    "peak_hbm_mb": "<=",
    "compilations": "<=",
    "executions": "<=",
}
_SECTIONS = ("total", "module", "line", "operation", "findings", "regression")


@dataclass(frozen=True)
class Budget:
    """Bounds.

    Attributes:
        total: Bound by name, of `TOTAL_BOUNDS`.
        parts: Kind ("module", "line", "operation") -> what -> most milliseconds of device time.
        forbidden: Rules of the advice that must find nothing.
        minimum_gain: Findings with a smaller part of the program's time are let pass.
        base: Profile to compare with; None = none.
        most_percent: By how many percent the time may be longer than the base's.
    """

    total: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    minimum_gain: float = 0.0
    base: Path | None = None
    most_percent: float = 0.0


def read_budget(path: Path) -> Budget:
    """Read a budget file; a base profile's path is relative to the file.

    Raises:
        UsageError: It cannot be read, is no TOML, has an entry that is not known, or bounds nothing.
    """
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"The budget {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The budget {path} is no valid TOML: {error}.") from error
    _refuse_unknown(path, content, _SECTIONS)
    total = _section(path, content, "total")
    _refuse_unknown(path, total, tuple(TOTAL_BOUNDS))
    findings, regression = _section(path, content, "findings"), _section(path, content, "regression")
    _refuse_unknown(path, findings, ("forbid", "minimum_gain"))
    _refuse_unknown(path, regression, ("base", "most_percent"))
    base = regression.get("base")
    budget = Budget(
        total={name: _number(path, name, value) for name, value in total.items()},
        parts={kind: _parts(path, content, kind) for kind in ("module", "line", "operation")},
        forbidden=_rules(path, findings.get("forbid", [])),
        minimum_gain=_number(path, "minimum_gain", findings.get("minimum_gain", 0.0)),
        base=path.parent / str(base) if base is not None else None,
        most_percent=_number(path, "most_percent", regression.get("most_percent", 0.0)),
    )
    if not (budget.total or any(budget.parts.values()) or budget.forbidden or budget.base):
        raise UsageError(
            f"The budget {path} bounds nothing: write [total] with time_ms = NUMBER, for example."
        )
    return budget


def _parts(path: Path, content: Mapping[str, Any], kind: str) -> dict[str, float]:
    found = {}
    for what, bounds in _section(path, content, kind).items():
        if not isinstance(bounds, dict) or set(bounds) != {"time_ms"}:
            raise UsageError(
                f'The budget {path} has a wrong entry: write [{kind}."{what}"] with time_ms = NUMBER.'
            )
        found[what] = _number(path, "time_ms", bounds["time_ms"])
    return found


def _section(path: Path, content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = content.get(name, {})
    if not isinstance(section, dict):
        raise UsageError(f"The budget {path} has a wrong entry: {name} must be a table, [{name}].")
    return section


def _refuse_unknown(path: Path, section: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in section:
        if name not in known:
            raise UsageError(
                f"The budget {path} has an unknown entry {name!r}: known are {', '.join(known)}."
            )


def _rules(path: Path, names: Any) -> tuple[str, ...]:
    """Names of rules, in either spelling, each of which there is."""
    known = RULES.names()
    if not isinstance(names, list):
        raise UsageError(f"The budget {path} has a wrong entry: forbid must be a list of rules.")
    spelled = {_american(rule): rule for rule in known}
    for name in names:
        if _american(str(name)) not in spelled:
            raise UsageError(
                f"The budget {path} forbids {name!r}, which is no rule of the advice: there are "
                f"{', '.join(known)}."
            )
    return tuple(spelled[_american(str(name))] for name in names)


def _american(name: str) -> str:
    """A name as it is spelled with z: host_synchronization."""
    return name.replace("isation", "ization")


def _number(path: Path, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise UsageError(f"The budget {path} has a wrong entry: {name} must be a number of 0 or more.")
    return float(value)
