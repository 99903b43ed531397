"""Charts: a Plotly figure in a card, with buttons that save it as PNG and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from dash import dcc, html

from neuron_explorer.parts.card import card

CONFIG = {"displayModeBar": False, "displaylogo": False, "showTips": False, "responsive": True}
MOST_LABEL = 60
_AXIS = {"title": {"standoff": 15}, "zerolinewidth": 2}
_TEMPLATE = {
    "layout": {"autotypenumbers": "strict", "hovermode": "closest", "xaxis": _AXIS, "yaxis": _AXIS},
    "data": {"bar": [{"marker": {"line": {"color": "#e5ecf6", "width": 0.5}}}]},
}
"""In place of Plotly's own, which is 6 kB in each figure and styles charts that no page has."""
_AXIS_UNITS = ((1e10, 1e9, "s"), (2e6, 1e6, "ms"), (0.0, 1e3, "µs"))  # from so many ns on; ns; its name


def chart_card(
    title: str,
    figure: Any,
    *,
    explains: str = "",
    description: str = "",
    actions: Sequence[Any] = (),
    identity: Any = None,
) -> Any:
    """A chart in a card.

    Args:
        figure: A Plotly figure.
        description: What it shows, for who cannot see it; the title by default.
        identity: Id of the graph, for callbacks.
    """
    options = {} if identity is None else {"id": identity}
    graph = _graph(figure, style={"height": f"{figure.layout.height or 320}px"}, **options)
    held = html.Div(graph, role="img", **{"aria-label": description or title})
    return card(title, held, actions=[*actions, *_save_buttons()], explains=explains)


def fitted_chart(figure: Any, description: str) -> Any:
    """A chart that fills what holds it, without a legend: for panels, which may be small."""
    figure.update_layout(
        height=None, autosize=True, showlegend=False, margin={"l": 48, "r": 10, "t": 10, "b": 34}
    )
    graph = _graph(figure, style={"height": "100%"}, responsive=True)
    return html.Div(graph, className="fitted", role="img", **{"aria-label": description})


def _graph(figure: Any, **options: Any) -> Any:
    figure.layout.template = _TEMPLATE
    return dcc.Graph(figure=figure, config=CONFIG, **options)


def _save_buttons() -> list[Any]:
    return [
        html.Button(
            kind.upper(), className="button quiet", title=f"Save as {kind.upper()}", **{"data-action": kind}
        )
        for kind in ("png", "svg")
    ]


def axis_unit(longest_ns: float) -> tuple[float, str]:
    """Nanoseconds of the unit in which an axis counts times up to that long, and its name."""
    return next((factor, name) for least, factor, name in _AXIS_UNITS if longest_ns >= least)


def plain(text: str) -> str:
    """Text of a profile for a figure: Plotly reads some HTML in its texts, so there is none."""
    return escape(text, quote=False)


def short(text: str, length: int = MOST_LABEL) -> str:
    """A long text without its middle, for an axis; escaped."""
    return plain(without_middle(text, length))


def without_middle(text: str, length: int) -> str:
    """A text of at most so many characters: of a longer one, its start and its end."""
    return text if len(text) <= length else f"{text[: length // 2 - 1]}…{text[-(length // 2) :]}"
