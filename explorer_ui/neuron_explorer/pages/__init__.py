"""The pages, in the order of the navigation."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from neuron_explorer.page import Page

_MODULES = (
    "neuron_explorer.pages.profiles",
    "neuron_explorer.pages.overview",
    "neuron_explorer.timeline.page",
    "neuron_explorer.pages.hierarchy",
    "neuron_explorer.pages.source",
    "neuron_explorer.pages.operators",
    "neuron_explorer.pages.roofline",
    "neuron_explorer.pages.memory",
    "neuron_explorer.pages.communication",
    "neuron_explorer.pages.advice",
    "neuron_explorer.pages.diff",
    "neuron_explorer.pages.query",
    "neuron_explorer.pages.export",
)


@cache
def pages() -> tuple[Page, ...]:
    """All pages: the `PAGE` of each module that there is."""
    return tuple(import_module(name).PAGE for name in _MODULES if _exists(name))


def find_page(path: str) -> Page | None:
    """The page at a path."""
    return next((page for page in pages() if page.path == path), None)


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
