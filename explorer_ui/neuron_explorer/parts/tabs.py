"""A choice between few things, held by one parameter of the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html

from neuron_explorer.page import View


def tabs(view: View, parameter: str, label: str, choices: Mapping[str, str], chosen: str) -> Any:
    """Links that set a parameter of the address; `choices` are titles by value."""
    links = [
        html.A(
            title,
            href=view.address.to(**{parameter: value}),
            className="choice",
            **({"aria-current": "true"} if value == chosen else {}),
        )
        for value, title in choices.items()
    ]
    named = html.Span(label, className="choices-label")
    return html.Nav([named, *links], className="choices", **{"aria-label": label})
