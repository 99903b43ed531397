"""Colours of the figures in the light and the dark theme. The style sheet has the same for the pages.

The categorical colours are told apart with any colour vision: Okabe and Ito's ("Color Universal Design",
2008), but for pink and grey, which look like their green to whoever lacks green cones. An engine has the same
colour on every page and in the timeline.
"""

from __future__ import annotations

from typing import Any

from flask import has_request_context, request

from neuron_tools.frozen import frozen

COOKIE = "neuron-explorer-theme"

BLUE, ORANGE, GREEN, PLUM = "#0072b2", "#e69f00", "#009e73", "#a33a76"
SKY, VERMILION, YELLOW, GREY = "#56b4e9", "#d55e00", "#f0e442", "#9aa3ae"
CATEGORICAL = (BLUE, ORANGE, GREEN, PLUM, SKY, VERMILION, YELLOW, GREY)
ENGINE_COLOURS = {
    "tensor": BLUE,
    "vector": ORANGE,
    "scalar": GREEN,
    "gpsimd": PLUM,
    "sync": SKY,
    "dma": VERMILION,
    "collectives": YELLOW,
}


@frozen
class Theme:
    """Colours that differ between light and dark."""

    name: str
    paper: str
    text: str
    faint: str
    line: str
    empty: str

    def layout(self, **changes: Any) -> dict[str, Any]:
        """The part of a Plotly layout that all figures share, with changes merged over it."""
        axis = {
            "gridcolor": self.line,
            "linecolor": self.line,
            "zerolinecolor": self.line,
            "tickfont": {"color": self.faint},
            "title": {"font": {"color": self.faint, "size": 12}},
            "automargin": True,
            "exponentformat": "SI",
        }
        base: dict[str, Any] = {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "Inter, system-ui, sans-serif", "size": 12, "color": self.text},
            "colorway": list(CATEGORICAL),
            "margin": {"l": 60, "r": 16, "t": 16, "b": 44},
            "hoverlabel": {"bgcolor": self.paper, "font": {"color": self.text}, "bordercolor": self.line},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
            "xaxis": axis,
            "yaxis": axis,
        }
        return _merged(base, changes)


LIGHT = Theme("light", "#ffffff", "#1b2430", "#56616f", "#dfe4ea", "#e6ebf2")
DARK = Theme("dark", "#161b22", "#e6eaf0", "#a3adba", "#2d3540", "#2a323d")


def requested_theme() -> Theme:
    """The theme that the user's browser asks for in a cookie; light outside a request."""
    asked = request.cookies.get(COOKIE) if has_request_context() else None
    return DARK if asked == DARK.name else LIGHT


def engine_colour(engine: str) -> str:
    """Colour of an engine, whatever the case of its name; grey for one that is not known."""
    return ENGINE_COLOURS.get(engine.lower(), GREY)


def engine_place(engine: str) -> int:
    """Place of an engine in the order in which all pages show them; what is not known comes last."""
    names = list(ENGINE_COLOURS)
    return names.index(engine.lower()) if engine.lower() in names else len(names)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Dictionaries merged all the way down."""
    result = dict(base)
    for name, value in changes.items():
        old = result.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _merged(old, value)
        result[name] = value
    return result
