"""The few numbers that matter most of a page, large, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dash import html


def key_numbers(numbers: Iterable[tuple[str, str, str]]) -> Any:
    """Numbers: what each is, its value, and a note below it."""
    return html.Dl([_number(*number) for number in numbers], className="figures")


def _number(name: str, value: str, note: str) -> Any:
    return html.Div([html.Dt(name), html.Dd([value, html.Div(note, className="note")])], className="figure")
