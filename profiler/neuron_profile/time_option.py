"""Stretches of time on the command line: `1.2ms`, `300us`, `5s`, `70` (nanoseconds)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import click

_NANOSECONDS = {"": 1, "ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"^(\d{1,18}(?:\.\d{1,12})?)\s*(ns|us|µs|ms|s|)$")
LARGEST_NS = 1 << 62


class DurationType(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """A time as int nanoseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Nanoseconds of a text; wrong usage where it is no time."""
        if isinstance(value, int):
            return value
        found = _DURATION.match(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no time: write 1.2ms, 300us, 5s or a number of nanoseconds.", param, ctx)
        nanoseconds = int(Decimal(found.group(1)) * _NANOSECONDS[found.group(2)])
        if nanoseconds > LARGEST_NS:
            self.fail(f"{value!r} is beyond what a profile can hold.", param, ctx)
        return nanoseconds


DURATION = DurationType()
