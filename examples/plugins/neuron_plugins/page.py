"""A page of the Explorer: the longest spans, as the analysis finds them."""

from __future__ import annotations

from typing import Any

from dash import html

from neuron_explorer.page import Page, View
from neuron_explorer.parts.card import card
from neuron_plugins.analysis import longest_spans


def layout(view: View) -> list[Any]:
    """A list of spans with their times."""
    spans = [html.Li(f"{span.name}: {span.duration_ns:,} ns") for span in longest_spans(view.part)]
    return [card("Longest spans", html.Ul(spans))]


PAGE = Page("/longest", "Longest spans", layout, group="From outside")
