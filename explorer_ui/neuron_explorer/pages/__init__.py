"""The pages, in the order of the navigation."""

from __future__ import annotations

from functools import cache

from neuron_explorer.page import Page
from neuron_tools.doors import Door

PAGES = Door(
    "neuron_explorer.pages",
    "page",
    (
        ("profiles", "neuron_explorer.pages.profiles:PAGE"),
        ("workspace", "neuron_explorer.workspace.page:PAGE"),
        ("overview", "neuron_explorer.pages.overview:PAGE"),
        ("timeline", "neuron_explorer.timeline.page:PAGE"),
        ("hierarchy", "neuron_explorer.pages.hierarchy:PAGE"),
        ("regions", "neuron_explorer.pages.regions:PAGE"),
        ("source", "neuron_explorer.pages.source:PAGE"),
        ("operators", "neuron_explorer.pages.operators:PAGE"),
        ("roofline", "neuron_explorer.pages.roofline:PAGE"),
        ("host", "neuron_explorer.pages.host:PAGE"),
        ("requests", "neuron_explorer.pages.requests:PAGE"),
        ("memory", "neuron_explorer.pages.memory:PAGE"),
        ("tensors", "neuron_explorer.pages.tensors:PAGE"),
        ("communication", "neuron_explorer.pages.communication:PAGE"),
        ("advice", "neuron_explorer.pages.advice:PAGE"),
        ("diff", "neuron_explorer.pages.diff:PAGE"),
        ("query", "neuron_explorer.pages.query:PAGE"),
        ("export", "neuron_explorer.pages.export:PAGE"),
    ),
)
"""Each a `Page`."""


@cache
def pages() -> tuple[Page, ...]:
    """All pages that can be loaded; of each other one, a warning says why."""
    return tuple(page for _, page in PAGES.load_all())


def find_page(path: str) -> Page | None:
    """The page at a path."""
    return next((page for page in pages() if page.path == path), None)
