"""The list of profiles."""

from __future__ import annotations

from typing import Any

from dash import html

from neuron_explorer.library import ProfileEntry
from neuron_explorer.page import Page, View
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card


def layout(view: View) -> list[Any]:
    """Components of the page."""
    entries = view.library.entries()
    if not entries:
        return [empty_state("There are no profiles yet.", "Capture one with `neuron-profile capture`.")]
    return [table_card("Profiles", ("Name", "Folder"), [_row(view, entry) for entry in entries])]


def _row(view: View, entry: ProfileEntry) -> list[Any]:
    link = html.A(entry.name, href=view.address.to("/overview", profile=entry.id))
    return [link, entry.location.rpartition("/")[0]]


PAGE = Page("/", "Profiles", layout, needs_profile=False)
