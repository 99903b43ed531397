"""Quantities as the extension and the timeline write them."""

from __future__ import annotations

import re

NANOSECONDS = {"ns": 1.0, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}


def nanoseconds(text: str) -> float:
    """The first time in a text."""
    found = re.search(r"([\d.]+)\s(ns|µs|us|ms|s)\b", text)
    assert found is not None, text
    return float(found.group(1)) * NANOSECONDS[found.group(2)]


def percent(text: str) -> float:
    """The first share in a text, from 0 to 100."""
    found = re.search(r"([\d.]+) %", text)
    assert found is not None, text
    return float(found.group(1))
