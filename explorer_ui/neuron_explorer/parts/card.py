"""A card: a titled frame around a table, a chart or a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html


def card(
    title: str,
    body: Any,
    *,
    actions: Sequence[Any] = (),
    explains: str = "",
    name: str = "",
    flush: bool = False,
) -> Any:
    """A card.

    Args:
        actions: Buttons beside the title.
        explains: A sentence above the body.
        name: Of the files that its buttons save.
        flush: Whether the body reaches the frame.
    """
    parts = [
        html.Header([html.H2(title), *actions]),
        *([html.P(explains, className="explains")] if explains else []),
        html.Div(body, className="body flush" if flush else "body"),
    ]
    return html.Section(
        parts, className="card", **{"data-name": file_name(name or title), "aria-label": title}
    )


def file_name(text: str) -> str:
    """A title as the name of a file: lower case, without what file systems dislike."""
    kept = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return "-".join(kept.split())[:60] or "table"
