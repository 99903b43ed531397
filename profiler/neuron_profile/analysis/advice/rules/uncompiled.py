"""Graphs that the compiler refused: they take no device time, so that all other numbers leave them out."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.warnings import find_warnings
from neuron_tools.records.capture_log import NOT_COMPILED


def find(context: Context) -> Iterator[Finding]:
    """One finding a graph, with the compiler's reason."""
    for warning in find_warnings(context.profile):
        if warning.category == NOT_COMPILED:
            yield Finding(
                "uncompiled",
                warning.message.removesuffix("."),
                "Take the operation that the reason names out of the graph, or write it with others: until "
                "then times and other findings are those of the rest of the program.",
                place=Place(operation=warning.message.split(" could not ")[0]),
                evidence={"warnings": warning.count},
            )
