"""Profiles: the store, and the formats of other tools."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from benchmarks.figures import Figure

PARTS = ("benchmarks.profile_store", "benchmarks.profile_formats")


def run(quick: bool = False) -> list[Figure]:
    """The figures of each part."""
    figures: list[Figure] = []
    for name in PARTS:
        if find_spec(name) is not None:
            figures += import_module(name).run(quick)
    return figures
