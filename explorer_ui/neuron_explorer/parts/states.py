"""What stands where there is nothing to show: nothing there, not there yet, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html


def empty_state(title: str, *more: Any) -> Any:
    """Says that there is nothing, why, and what to do."""
    details = [html.P(part) if isinstance(part, str) else part for part in more]
    return html.Div([html.P(title, className="state-title"), *details], className="state empty")


def loading_state(text: str, fraction: float | None, elapsed_s: float, controls: Sequence[Any] = ()) -> Any:
    """Says what is computed, how far it is where that is known, and since when."""
    attributes = {} if fraction is None else {"value": f"{fraction:.3f}", "max": "1"}
    bar = html.Progress(**attributes, **{"aria-label": text or "Computing"})
    seconds = f"{elapsed_s:.0f} s" if elapsed_s >= 1 else ""
    line = html.P([f"{text or 'Computing'}…", html.Span(seconds, className="faint")], role="status")
    return html.Div([line, bar, *controls], className="state loading")


def error_state(message: str, controls: Sequence[Any] = ()) -> Any:
    """Says what went wrong."""
    return html.Div([html.P(message, role="alert"), *controls], className="state error")
