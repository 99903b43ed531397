"""Prometheus's text format, version 0.0.4: families of series with one help and one type each.

prometheus_client writes the same, at several times the cost (benchmarks/monitor.py compares them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Kind = Literal["counter", "gauge"]
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(slots=True)
class Family:
    """Series of one name. Samples of the same labels are summed; where `takes_maximum`, the largest counts.

    Attributes:
        samples: Value by labels as they are written.
    """

    name: str
    kind: Kind
    help: str
    takes_maximum: bool = False
    samples: dict[str, float] = field(default_factory=dict)

    def add(self, labels: str, value: float) -> None:
        """Add a sample; processes that share a tag share their series."""
        known = self.samples.get(labels)
        if known is None:
            self.samples[labels] = value
        else:
            self.samples[labels] = max(known, value) if self.takes_maximum else known + value


def label_text(labels: Mapping[str, str]) -> str:
    """Labels in the order of their names, e.g. `engine="tensor",neuroncore="0"`."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in sorted(labels.items()))


class Labels:
    """Labels that many series share, joined with their own at little cost.

    Args:
        common: Labels of every series.
    """

    def __init__(self, common: Mapping[str, str]) -> None:
        self._common = {name: label_text({name: value}) for name, value in common.items()}
        self._plans: dict[tuple[str, ...], list[str]] = {}

    def text(self, **own: str) -> str:
        """All labels of a series, sorted by name, as Prometheus's own libraries write them."""
        names = tuple(own)
        plan = self._plans.get(names)
        if plan is None:
            plan = self._plans[names] = sorted([*self._common, *names])
        return ",".join(
            f'{name}="{own[name].translate(_ESCAPES)}"' if name in own else self._common[name]
            for name in plan
        )


def render(families: list[Family]) -> bytes:
    """The text of all families that have a sample."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        name = family.name
        lines.append(f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n")
        lines.extend(f"{name}{{{labels}}} {value!r}\n" for labels, value in family.samples.items())
    return "".join(lines).encode()
