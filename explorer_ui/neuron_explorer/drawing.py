"""Draws a page; what goes wrong in it becomes a sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from neuron_explorer import shell
from neuron_explorer.page import Page, View
from neuron_explorer.parts.states import empty_state, error_state
from neuron_tools.errors import NeuronToolsError


def draw_page(page: Page | None, view: View) -> Any:
    """Components of a page."""
    if page is None:
        return empty_state("There is no such page.", "Choose one on the left.")
    if not page.needs_profile:
        return _told(view, lambda: page.layout(view))
    return guarded(view, lambda: page.layout(view))


def guarded(view: View, draw: Callable[[], Any]) -> Any:
    """Components that are drawn from a profile."""
    if not view.address.profile:
        return empty_state("No profile is chosen.", shell.choose_profile(view))

    def with_profile() -> Any:
        view.profile  # noqa: B018  opens it: a profile that cannot be opened is told here
        return draw()

    return _told(view, with_profile)


def _told(view: View, draw: Callable[[], Any]) -> Any:
    try:
        return draw()
    except NeuronToolsError as error:
        return error_state(str(error), [shell.choose_profile(view)])
    except Exception as error:
        logging.getLogger(__name__).exception("A page could not be drawn: %s", view.address.path)
        return error_state(f"This page cannot be shown ({type(error).__name__}).")
